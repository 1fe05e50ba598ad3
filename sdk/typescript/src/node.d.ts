// The few functions of Node.js that the package uses, so that it needs no package of types. In browsers they are not called.
declare module 'node:fs/promises' {
  interface FileHandle {
    writeFile(content: Uint8Array | string): Promise<void>;
    sync(): Promise<void>;
    close(): Promise<void>;
  }
  export function readFile(file: string | URL): Promise<Uint8Array<ArrayBuffer>>;
  export function readFile(file: string | URL, encoding: 'utf8'): Promise<string>;
  export function open(file: string, flags: string): Promise<FileHandle>;
  export function rename(from: string, to: string): Promise<void>;
}
declare module 'node:path' {
  export function dirname(file: string): string;
  export function join(...parts: string[]): string;
}
