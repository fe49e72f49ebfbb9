import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { codeOf, postForm, postJson, storeQuestion } from './ask.ts';
import { type Actor, api, type Stage } from './places.ts';

/** Strangers who take more than their share. */

const STREAMS_AT_ONCE = 300;
const UPLOAD_BYTES = 4 * 1024 * 1024;
const PACE_MS = 50;

const refusalOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? 'no answer';

/** Opens event streams from the beginning and reads none of them. */
export const streamHolder = (at: number): Actor => ({
  who: 'streams that nobody reads',
  async run({ places, caller, tally, signal, pause }) {
    const { hostname, port, host } = new URL(places.cores[at % places.cores.length]!);
    const held = new Set<ReturnType<typeof connect>>();
    signal.addEventListener('abort', () => {
      for (const socket of held) socket.destroy();
    });
    while (!signal.aborted) {
      if (held.size < STREAMS_AT_ONCE) {
        const socket = connect({ host: hostname, port: Number(port), localAddress: caller.address });
        held.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => held.delete(socket));
        socket.write(
          `GET /api/v0/events?cursor=0 HTTP/1.1\r\nhost: ${host}\r\naccept: text/event-stream\r\n\r\n`,
        );
        // The head of the answer is looked at, then nothing is read any more.
        socket.once('readable', () => {
          const status = /^HTTP\/1\.1 (\d+)/.exec(String(socket.read(12) ?? ''))?.[1];
          tally.hostile('streams that nobody reads', status === '200' ? undefined : (status ?? 'closed'));
        });
      }
      await pause(PACE_MS);
    }
  },
});

/** Fills the disk with files that no message keeps. */
export const uploader = (at: number): Actor => ({
  who: 'unsigned uploads',
  async run({ places, caller, tally, signal, pause }) {
    const core = places.cores[at % places.cores.length]!;
    while (!signal.aborted) {
      const form = new FormData();
      form.set('file', new Blob([randomBytes(UPLOAD_BYTES)]), 'junk');
      try {
        const asked = await caller.ask(`${api(core)}/storage/add_file`, await postForm(form));
        tally.hostile('unsigned uploads', asked.status < 300 ? undefined : codeOf(asked));
      } catch (error) {
        if (!signal.aborted) tally.hostile('unsigned uploads', refusalOf(error));
      }
      await pause(4 * PACE_MS);
    }
  },
});

/** Calls a program, at a compute node or by a core node in turn. Never fails: what comes of it is counted. */
async function callProgram({ places, caller, tally, signal }: Stage, who: string, hash: string, n: number) {
  const { computes, cores } = places;
  const isDirect = n % 2 === 0;
  const turn = Math.floor(n / 2);
  const url = isDirect
    ? `${computes[turn % computes.length]!}/vm/${hash}`
    : `${api(cores[turn % cores.length]!)}/run/${hash}`;
  try {
    const asked = await caller.ask(url, isDirect ? {} : postJson('{"variables":{}}'));
    tally.hostile(who, asked.status < 300 ? undefined : codeOf(asked));
  } catch (error) {
    if (!signal.aborted) tally.hostile(who, refusalOf(error));
  }
}

/** A program that takes all memory and sleeps, called directly and by a core node. */
export const sleeper = (at: number): Actor => ({
  who: 'programs that sleep',
  async run(stage) {
    const { places, caller, signer, signal, pause } = stage;
    const core = places.cores[at % places.cores.length]!;
    const content = {
      name: 'sleeper',
      runtime: 'python3',
      code: 'import time\ndef main(variables, request): time.sleep(3000)\n',
      memory: 950,
      timeout: 3600,
    };
    const { body, itemHash } = signMessage({ type: 'PROGRAM', content }, signer);
    await caller.ask(`${api(core)}/programs`, postJson(body)).catch(() => {});
    for (let n = 0; !signal.aborted; n++) {
      void callProgram(stage, 'programs that sleep', itemHash, n);
      await pause(20 * PACE_MS);
    }
  },
});

/** The deployed network's image for Python programs (docs/programs.md). */
const PYTHON_IMAGE = '63f07193e6ee9d207b7d1fcf8286f9aee34e6f12f101d2ec77c1229f92964696';
const CODE_BYTES = 4 * 1024 * 1024;

/** A file that is like no other; as a program it fails unless the same file, which is its volume too, is there whole. */
function drawProgram(): Uint8Array<ArrayBuffer> {
  const text = `import os
def main(variables, request):
    assert os.path.getsize("/opt/given") == ${CODE_BYTES}
    return "whole"
#`;
  return Buffer.from(text + randomBytes(CODE_BYTES / 2).toString('hex')).subarray(0, CODE_BYTES);
}

/** Programs that each have large files of their own, as code and as volumes, so that every call has something to fetch. */
export const fetcher = (at: number): Actor => ({
  who: 'programs with large files',
  async run(stage) {
    const { places, caller, signer, signal, tally, pause } = stage;
    const who = 'programs with large files';
    const core = places.cores[at % places.cores.length]!;
    let before: string | undefined;
    for (let n = 0; !signal.aborted; n++) {
      const { hash: ref, question } = await storeQuestion(signer, drawProgram());
      const content = {
        ...{ type: 'vm-function', allow_amend: false, environment: {} },
        on: { http: true, persistent: false },
        code: { encoding: 'plain', entrypoint: 'main', ref, use_latest: false },
        resources: { vcpus: 1, memory: 128, seconds: 30 },
        runtime: { ref: PYTHON_IMAGE, use_latest: true, comment: '' },
        volumes: [{ ref, mount: '/opt/given', use_latest: false }],
      };
      const { body, itemHash } = buildNetworkMessage({ type: 'PROGRAM', content }, signer);
      try {
        const stored = await caller.ask(`${api(core)}/storage/store`, question);
        const sent = stored.status < 300 ? await caller.ask(`${api(core)}/messages`, postJson(body)) : stored;
        if (sent.status >= 300) tally.hostile(who, codeOf(sent));
        // By now the one before has come to the other nodes.
        if (before !== undefined) void callProgram(stage, who, before, n);
        before = sent.status < 300 ? itemHash : undefined;
      } catch (error) {
        if (!signal.aborted) tally.hostile(who, refusalOf(error));
      }
      await pause(20 * PACE_MS);
    }
  },
});

/** Asks what costs most, as often as it can. */
export const hammer = (at: number): Actor => ({
  who: 'heavy questions',
  async run({ places, caller, tally, signal, pause }) {
    const base = api(places.cores[at % places.cores.length]!);
    const paths = [
      '/state/digest',
      '/messages?limit=100&page=50',
      '/instances?limit=100',
      '/messages.json?pagination=100',
    ];
    for (let n = 0; !signal.aborted; n++) {
      try {
        const asked = await caller.ask(base + paths[n % paths.length]!);
        tally.hostile('heavy questions', asked.status < 300 ? undefined : codeOf(asked));
      } catch (error) {
        if (!signal.aborted) tally.hostile('heavy questions', refusalOf(error));
      }
      await pause(PACE_MS);
    }
  },
});
