// Files that survive a crash (Node.js).

/** Replaces a file atomically, and flushes it and its folder. */
export async function writeDurably(file: string, content: Uint8Array | string): Promise<void> {
  const { open, rename } = await import('node:fs/promises');
  const { dirname } = await import('node:path');
  const fresh = `${file}.${crypto.randomUUID()}`;
  const out = await open(fresh, 'wx');
  try {
    await out.writeFile(content);
    await out.sync();
  } finally {
    await out.close();
  }
  await rename(fresh, file);
  const folder = await open(dirname(file), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
