import { gzipSync } from 'node:zlib';

/** A file of the console, ready to be sent. */
export interface ConsoleFile {
  readonly type: string;
  readonly bytes: Uint8Array;
  /** The same, as gzip has it. */
  readonly gzip: Uint8Array;
  /** Whether its name holds its hash: it never changes under this name. */
  readonly isImmutable: boolean;
  /** What the browser may do with it (CSP); workers obey their own. */
  readonly policy: string;
}

/** By the path below the page's own address: `''` is the page itself. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Where the page itself is among the files. */
export const PAGE_FILE = 'index.html';

/** Nothing but the console's own files; what it asks may be any node of any network. */
const LOOPBACK = ['127.0.0.1', 'localhost'].map((host) => `http://${host}:*`).join(' ');
const common = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** @param origins places beside the node itself that are asked over plain HTTP */
export const pagePolicy = (origins: readonly string[]) =>
  `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; worker-src 'self'; connect-src ${["'self'", 'https:', LOOPBACK, ...origins].join(' ')}; ${common}; require-trusted-types-for 'script'; trusted-types skerry`;
/** The hashes are WebAssembly. */
const workerPolicy = (origins: readonly string[]) =>
  `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src ${["'self'", 'https:', LOOPBACK, ...origins].join(' ')}; ${common}`;

/** Where private keys are: it reaches no network, so that a key cannot leave it for one. */
const SIGNING_POLICY = `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'none'; ${common}`;

const workerOf = (path: string) => /(?:^|\/)(verifier|live|signing)-[^/]*\.js$/.exec(path)?.[1];

function policyOf(path: string, origins: readonly string[]): string {
  const worker = workerOf(path);
  if (worker === 'signing') return SIGNING_POLICY;
  return worker === undefined ? pagePolicy(origins) : workerPolicy(origins);
}

/** @param origins see `pagePolicy` */
export function describeFile(path: string, bytes: Uint8Array, origins: readonly string[]): ConsoleFile {
  return {
    type: TYPES[path.split('.').at(-1)!] ?? 'application/octet-stream',
    bytes,
    gzip: gzipSync(bytes, { level: 9 }),
    isImmutable: path !== PAGE_FILE,
    policy: policyOf(path, origins),
  };
}
