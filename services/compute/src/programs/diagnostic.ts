import { readFile } from 'node:fs/promises';
import { answer, cached, type Handlers } from '@skerry/kit';
import { DIAGNOSTIC_VM, DIAGNOSTIC_VMS, programOf, sha256Hex } from '@skerry/protocol';
import type { PROGRAMS_API } from '@skerry/protocol/api/compute/programs';
import type { LoadedProgram } from './code/library.ts';
import { OWN, type ProgramAnswer, type Programs } from './programs.ts';

const SOURCE = new URL('./inside/diagnostic.mjs', import.meta.url);
const MEMORY_MIB = 64;
const TIMEOUT_SECONDS = 10;

/**
 * The program that tells whether programs work here, under the hash of its text and under those that monitors ask for. Known
 * to every node without a message.
 */
export async function loadDiagnosticPrograms(nodeId: string): Promise<LoadedProgram[]> {
  const text = await readFile(SOURCE, 'utf8');
  const hash = sha256Hex(text);
  const program = programOf({
    name: 'diagnostic',
    code: text,
    runtime: 'nodejs',
    memory: MEMORY_MIB,
    timeout: TIMEOUT_SECONDS,
  });
  const diagnostic: LoadedProgram = {
    ...{ hash, owner: '', program, runtime: 'nodejs', codeRef: hash, volumes: [] },
    code: {
      bytes: Buffer.from(text),
      encoding: 'plain',
      entrypoint: null,
      environment: { NET_NODE_ID: nodeId },
      memoryMib: MEMORY_MIB,
      cpus: 1,
    },
  };
  return [hash, ...DIAGNOSTIC_VMS].map((name) => ({ ...diagnostic, hash: name }));
}

type Check = (ask: (path: string) => Promise<ProgramAnswer>) => Promise<boolean>;

const jsonOf = ({ result }: ProgramAnswer): unknown =>
  result.kind === 'answer' ? JSON.parse(result.body.toString('utf8')) : undefined;
const memberOf = (answer: ProgramAnswer, name: string) =>
  (jsonOf(answer) as Record<string, unknown> | undefined)?.[name];

/** By the names that monitors know. What programs here cannot have (a network, a disk that stays) is left out. */
const CHECKS: Readonly<Record<string, Check>> = {
  index: async (ask) => memberOf(await ask('/'), 'Example') === 'example_fastapi',
  environ: async (ask) => typeof memberOf(await ask('/environ'), 'NET_NODE_ID') === 'string',
  cache: async (ask) => {
    const isSet = jsonOf(await ask('/cache/set/a/42')) === true;
    return isSet && jsonOf(await ask('/cache/get/a')) === '42';
  },
  error_handling: async (ask) => {
    const { result } = await ask('/raise');
    return result.kind === 'failed' && result.traceback.includes('raised on purpose');
  },
  lifespan: async (ask) => memberOf(await ask('/lifespan'), 'Lifespan') === true,
};
const OMITTED_WHEN_RETRO = ['lifespan'];
/** The others are for information. */
const NEEDED = ['index', 'environ', 'error_handling', 'lifespan'];

async function runChecks(programs: Programs, hash: string): Promise<Record<string, boolean>> {
  const ask = (path: string) =>
    programs.run(
      hash,
      {
        ...{ method: 'GET', path, query: '', headers: {}, variables: {} },
        isRun: false,
        body: Buffer.alloc(0),
      },
      OWN,
    );
  const results: Record<string, boolean> = {};
  // One after the other, in one sandbox: the cache is that sandbox's.
  for (const [name, check] of Object.entries(CHECKS)) results[name] = await check(ask);
  return results;
}

/** However often it is asked for, the program is not run more often. */
const KEEP_MS = 5_000;

/** Runs the diagnostic program through all its paths. */
export function createProgramCheck(programs: Programs): Handlers<typeof PROGRAMS_API>['checkPrograms'] {
  const check = cached(KEEP_MS, () => runChecks(programs, DIAGNOSTIC_VM));
  return async ({ query }) => {
    const results = { ...(await check()) };
    if (query['retro-compatibility'] === 'true') for (const name of OMITTED_WHEN_RETRO) delete results[name];
    return answer(NEEDED.every((name) => results[name] !== false) ? 200 : 503, results);
  };
}
