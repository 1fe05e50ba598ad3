// The log of `tabellion serve --dev`, for trials (Node.js).

import { Client } from './client.js';
import { loadKey, type SigningKey } from './core.js';

/** A dev log: its client, its trust file, and an issuer whom its policy admits, with the key. */
export interface DevLog {
  client: Client;
  trust: string;
  issuer: string;
  key: SigningKey;
}

/** Reads the folder that `tabellion serve --dev` writes. */
export async function devLog(folder = 'tabellion-dev'): Promise<DevLog> {
  const { readFile } = await import('node:fs/promises');
  const { join } = await import('node:path');
  const [url, trust, key] = await Promise.all([
    readFile(join(folder, 'url'), 'utf8'),
    readFile(join(folder, 'trust.toml'), 'utf8'),
    readFile(join(folder, 'issuer.key'), 'utf8'),
  ]);
  return { client: new Client(url.trim(), { trust }), trust, issuer: 'https://dev.issuer.example', key: await loadKey(key) };
}
