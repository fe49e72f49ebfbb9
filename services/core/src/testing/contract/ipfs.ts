import { Readable } from 'node:stream';
import { buildNetworkMessage, type NetworkDraft } from '@skerry/client';
import { Dag } from '../../store/ipfs/testing/dags.ts';
import { signers, type TestCore } from '../core.ts';
import { type Cases, FILE_BYTES, formCall, jsonCall, refuses, signedCall, succeeds } from './case.ts';

const NOBODY = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
const EMPTY_DIRECTORY = 'QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn';
const ADD = '/api/v0/ipfs/add_file';
const ADD_CAR = '/api/v0/ipfs/add_car';

/** The CID of a file that the node has. */
async function addFile(core: TestCore): Promise<string> {
  const { path: url, headers = {}, body } = formCall(ADD, {}, FILE_BYTES);
  const response = await core.api.inject({ method: 'POST', url, headers: { ...headers }, payload: body! });
  return response.json<{ hash: string }>().hash;
}

/** The CID of a directory with a file `a`, of which the node has the blocks. */
async function addDirectory(core: TestCore): Promise<string> {
  const dag = new Dag();
  const root = await dag.directory({ a: FILE_BYTES });
  for (const block of dag.blocks) {
    const blob = await core.blobs.receive(Readable.from([block]), block.length);
    await blob.keep();
  }
  return root.toString();
}

interface Car {
  readonly root: string;
  readonly bytes: Buffer;
}

/** A directory as a CAR. */
async function carOf(files: Readonly<Record<string, Uint8Array>>): Promise<Car> {
  const dag = new Dag();
  const root = await dag.directory(files);
  return { root: root.toString(), bytes: await dag.car(root) };
}

/** A CAR with the signed message that keeps it. */
function carCall({ root, bytes }: Car) {
  const { alice } = signers;
  const draft: NetworkDraft = { type: 'STORE', content: { item_type: 'ipfs', item_hash: root } };
  const { body } = buildNetworkMessage(draft, alice);
  return formCall(ADD_CAR, { metadata: body }, bytes);
}

const pinCall = (hash: string) => signedCall('/api/v0/ipfs/pin', { type: 'IPFS_PIN', content: { hash } });

export const ipfsCases: Cases = {
  'GET /api/v0/ipfs/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/ipfs/${await addFile(core)}` })),
    refuses('CID_NOT_FOUND', `/api/v0/ipfs/${NOBODY}`),
    refuses('INVALID_HASH', '/api/v0/ipfs/abc'),
  ],
  'HEAD /api/v0/ipfs/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/ipfs/${await addFile(core)}` })),
    refuses(404, `/api/v0/ipfs/${NOBODY}`),
  ],
  'GET /api/v0/ipfs/{hash}/{path}': [
    succeeds(async (core) => ({ path: `/api/v0/ipfs/${await addDirectory(core)}/a` })),
    refuses('FILE_NOT_FOUND', async (core) => ({ path: `/api/v0/ipfs/${await addFile(core)}/a` })),
  ],
  'HEAD /api/v0/ipfs/{hash}/{path}': [
    succeeds(async (core) => ({ path: `/api/v0/ipfs/${await addDirectory(core)}/a` })),
    refuses(404, `/api/v0/ipfs/${EMPTY_DIRECTORY}/a`),
  ],
  'GET /ipfs/{hash}': [
    succeeds(async (core) => ({ path: `/ipfs/${await addFile(core)}?format=car&dag-scope=entity` })),
    refuses('CID_NOT_FOUND', `/ipfs/${NOBODY}?format=raw`),
    refuses('INVALID_PARAMETERS', `/ipfs/${NOBODY}?format=tar`),
    refuses('NOT_ACCEPTABLE', () => ({
      path: `/ipfs/${NOBODY}`,
      headers: { accept: 'application/vnd.ipfs.ipns-record' },
    })),
  ],
  'HEAD /ipfs/{hash}': [
    succeeds(async (core) => ({ path: `/ipfs/${await addFile(core)}?format=raw` })),
    refuses(404, `/ipfs/${NOBODY}?format=car`),
  ],
  'GET /ipfs/{hash}/{path}': [
    succeeds(async (core) => ({ path: `/ipfs/${await addDirectory(core)}/a?format=car` })),
    refuses('FILE_NOT_FOUND', async (core) => ({ path: `/ipfs/${await addDirectory(core)}/b?format=car` })),
  ],
  'HEAD /ipfs/{hash}/{path}': [
    succeeds(async (core) => ({ path: `/ipfs/${await addDirectory(core)}/a` })),
    refuses(404, async (core) => ({ path: `/ipfs/${await addDirectory(core)}/b` })),
  ],
  'POST /api/v0/ipfs/pin': [
    succeeds(async (core) => pinCall(await addFile(core))),
    { ...succeeds(() => pinCall(NOBODY)), expects: 202 },
    refuses('INVALID_CONTENT', () => pinCall('abc')),
  ],
  'POST /api/v0/ipfs/add_file': [
    succeeds(() => formCall(ADD, {}, FILE_BYTES)),
    refuses('INVALID_PARAMETERS', () => formCall(ADD, {})),
    refuses('SIGNATURE_REQUIRED', () => formCall(ADD, { metadata: '{}' }, FILE_BYTES)),
  ],
  'POST /api/v0/ipfs/add_car': [
    succeeds(async () => carCall(await carOf({ a: FILE_BYTES }))),
    refuses('INVALID_CAR', async () => carCall({ ...(await carOf({ a: FILE_BYTES })), bytes: FILE_BYTES })),
    refuses('SIGNATURE_REQUIRED', async () => formCall(ADD_CAR, {}, (await carOf({ a: FILE_BYTES })).bytes)),
  ],
  'POST /api/v0/ipfs/add_json': [
    succeeds(() => jsonCall('/api/v0/ipfs/add_json', '{"a":1}')),
    refuses('INVALID_JSON', () => jsonCall('/api/v0/ipfs/add_json', '{')),
  ],
};
