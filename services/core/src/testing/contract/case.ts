import {
  buildNetworkMessage,
  type MessageDraft,
  type NetworkDraft,
  type Signer,
  signMessage,
} from '@skerry/client';
import { type ErrorCode, sha256Hex } from '@skerry/protocol';
import { instanceContent, signers, type TestCore } from '../core.ts';

/** One request, whole: what the contract test sends. */
export interface Call {
  /** Beginning with `/`, query included; its path must be one of the operation's. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly remoteAddress?: string;
}

export interface Case {
  /** The status of a success, or the code of a refusal, or the status of a refusal that has a body of its own. */
  readonly expects: number | ErrorCode;
  /** Which core node is called: the one of all cases; one of its own, since the case does something to it; the one that has lost its database. */
  readonly on: 'shared' | 'own' | 'dark';
  /** Where the database is lost, the call is made before. */
  readonly makeCall: (core: TestCore) => Call | Promise<Call>;
}

/** Operation (`GET /api/v0/messages/{hash}`, as in the document) -> its cases: one success and one refusal at least. */
export type Cases = Readonly<Record<string, readonly Case[]>>;

type MakeCall = Case['makeCall'] | string;

const asMaker = (call: MakeCall): Case['makeCall'] =>
  typeof call === 'string' ? () => ({ path: call }) : call;

export const succeeds = (call: MakeCall): Case => ({ expects: 200, on: 'shared', makeCall: asMaker(call) });

export const answers = (expects: number, call: MakeCall): Case => ({
  expects,
  on: 'shared',
  makeCall: asMaker(call),
});

export const refuses = (expects: ErrorCode | number, call: MakeCall): Case => ({
  expects,
  on: 'shared',
  makeCall: asMaker(call),
});

export const alone = (one: Case): Case => ({ ...one, on: 'own' });

/** Clients that nobody else is: each has its rate to itself. */
let clients = 0;

/** What every limited route refuses: one request more than its rate. */
export const refusesTooMany = (path: string, count = 100, method: 'GET' | 'POST' = 'GET'): Case => ({
  expects: 'RATE_LIMITED',
  on: 'shared',
  makeCall: async ({ api }) => {
    const remoteAddress = `203.0.113.${++clients}`;
    for (let n = 0; n < count; n++) await api.inject({ method, url: path, remoteAddress });
    return { path, remoteAddress };
  },
});

/** What every limited route answers while the database is away, and what brings it back. */
export const refusesWithoutDatabase = (call: MakeCall): Case => ({
  expects: 'DATABASE_UNAVAILABLE',
  on: 'dark',
  makeCall: asMaker(call),
});

export const programContent = {
  name: 'hello',
  code: 'print("hello")',
  runtime: 'python3',
  memory: 128,
  timeout: 5,
};

export const NO_HASH = '0'.repeat(64);
const JSON_TYPE = { 'content-type': 'application/json' };

export const signedCall = (path: string, draft: MessageDraft, signer: Signer = signers.alice): Call => ({
  path,
  headers: JSON_TYPE,
  body: signMessage(draft, signer).body,
});

export const networkCall = (draft: NetworkDraft, signer: Signer = signers.alice): Call =>
  jsonCall('/api/v0/messages', buildNetworkMessage(draft, signer).body);

export const jsonCall = (path: string, body: string): Call => ({ path, headers: JSON_TYPE, body });

const FORM_BOUNDARY = 'contract-boundary';

/** A multipart form: text fields, and bytes as the field `file`. */
export function formCall(path: string, fields: Readonly<Record<string, string>>, file?: Buffer): Call {
  const parts = Object.entries(fields).map(
    ([name, value]) =>
      `--${FORM_BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const head = `--${FORM_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: text/plain\r\n\r\n`;
  const body = Buffer.concat([
    Buffer.from(parts.join('')),
    ...(file === undefined ? [] : [Buffer.from(head), file, Buffer.from('\r\n')]),
    Buffer.from(`--${FORM_BOUNDARY}--\r\n`),
  ]);
  return { path, headers: { 'content-type': `multipart/form-data; boundary=${FORM_BOUNDARY}` }, body };
}

export const FILE_BYTES = Buffer.from('what the contract test stores\n');

export function uploadCall(file: Buffer = FILE_BYTES, more: Readonly<Record<string, string>> = {}): Call {
  const signature = signers.alice.sign(sha256Hex(file));
  return formCall('/api/v0/storage/store', { address: signers.alice.address, signature, ...more }, file);
}

async function itemHashOf(core: TestCore, call: Call): Promise<string> {
  const { path: url, headers = {}, body = '' } = call;
  const response = await core.api.inject({ method: 'POST', url, headers: { ...headers }, payload: body });
  return String(response.json<{ item_hash: string }>().item_hash);
}

/** Things that calls can name: they are made when somebody asks. */
export const given = {
  message: (core: TestCore) =>
    itemHashOf(
      core,
      signedCall('/api/v0/messages', { type: 'POST', content: { type: 'note', content: { text: 'hello' } } }),
    ),
  instance: (core: TestCore) =>
    itemHashOf(core, signedCall('/api/v0/instances', { type: 'INSTANCE', content: instanceContent })),
  /** Of alice, key `contract`. */
  aggregate: (core: TestCore) =>
    itemHashOf(
      core,
      signedCall('/api/v0/aggregates', {
        type: 'AGGREGATE',
        content: { key: 'contract', content: { name: 'a', 'two words': null } },
      }),
    ),
  program: (core: TestCore) =>
    itemHashOf(core, signedCall('/api/v0/programs', { type: 'PROGRAM', content: programContent })),
  /** A STORE message without its file. */
  pending: (core: TestCore) =>
    itemHashOf(
      core,
      signedCall('/api/v0/messages', {
        type: 'STORE',
        content: { item_type: 'storage', item_hash: NO_HASH },
      }),
    ),
  async forgotten(core: TestCore): Promise<string> {
    const hash = await given.message(core);
    await itemHashOf(core, signedCall('/api/v0/messages', { type: 'FORGET', content: { hashes: [hash] } }));
    // What a FORGET takes back is decided after it, by itself.
    await core.rooms.pipeline.idle();
    return hash;
  },
  /** Its SHA-256. */
  async file(core: TestCore): Promise<string> {
    await itemHashOf(core, uploadCall());
    return sha256Hex(FILE_BYTES);
  },
  /** A STORE message of alice, with the name `contract`. */
  async stored(core: TestCore): Promise<string> {
    const hash = await given.file(core);
    const content = { item_type: 'storage', item_hash: hash, ref: 'contract' };
    return itemHashOf(core, signedCall('/api/v0/messages', { type: 'STORE', content }));
  },
};
