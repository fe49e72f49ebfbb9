import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestDatabase } from '../../packages/database/src/testing/database.ts';
import { CHAIN_ID, TOKEN } from '../../packages/indexer/src/testing/setup.ts';

/** The newest that resolves: 0.17.7 needs a package that the registry lacks, 1.0.0 is an older state under a higher number. */
const PONDER = 'ponder@0.16.10';
const INSTALL_TIMEOUT_MS = 300_000;
const RUN_TIMEOUT_MS = 1_800_000;
const POLL_MS = 100;

const FILES: Readonly<Record<string, string>> = {
  'package.json': '{"type":"module","private":true}',
  'ponder.config.ts': `import { createConfig } from 'ponder';
import { parseAbi } from 'viem';
export default createConfig({
  chains: { anvil: { id: ${CHAIN_ID}, rpc: 'RPC_URL' } },
  contracts: { Token: { chain: 'anvil', address: '${TOKEN}', startBlock: 0,
    abi: parseAbi(['event Transfer(address indexed from, address indexed to, uint256 value)']) } },
});`,
  // The same columns as ours, and indexes for the same filters.
  'ponder.schema.ts': `import { index, onchainTable } from 'ponder';
export const transfer = onchainTable('transfer', (t) => ({
  id: t.text().primaryKey(), block: t.bigint(), timestamp: t.bigint(), from: t.hex(), to: t.hex(), value: t.bigint(),
  transactionHash: t.hex(),
}), (table) => ({ byFrom: index().on(table.from), byTo: index().on(table.to), byBlock: index().on(table.block) }));`,
  'src/index.ts': `import { ponder } from 'ponder:registry';
import { transfer } from 'ponder:schema';
ponder.on('Token:Transfer', async ({ event, context }) => {
  await context.db.insert(transfer).values({ id: event.id, block: event.block.number, timestamp: event.block.timestamp,
    from: event.args.from, to: event.args.to, value: event.args.value, transactionHash: event.transaction.hash });
});`,
  'src/api/index.ts': `import { Hono } from 'hono';
export default new Hono();`,
};

export interface PonderRun {
  readonly seconds: number;
  readonly peakBytes: number;
}

async function install(directory: string, rpcUrl: string): Promise<void> {
  for (const [path, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text.replace('RPC_URL', rpcUrl));
  }
  const args = ['install', PONDER, 'viem@2.57.1', 'hono', '--no-audit', '--no-fund', '--ignore-scripts'];
  const child = spawn('npm', args, { cwd: directory, stdio: 'ignore', timeout: INSTALL_TIMEOUT_MS });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`npm install ${PONDER} ended with ${code}`);
}

/** Ponder on the same chain and server, in a process of its own. Throws where it cannot be installed or does not get there. */
export async function runPonder(
  rpcUrl: string,
  databaseUrl: string,
  pool: TestDatabase<unknown>['pool'],
  events: number,
): Promise<PonderRun> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bench-ponder-'));
  let output = '';
  try {
    await install(directory, rpcUrl);
    const program = join(directory, 'node_modules/ponder/dist/esm/bin/ponder.js');
    const startMs = performance.now();
    const child = spawn(
      process.execPath,
      [program, 'start', '--schema', 'bench', '--port', '0', '--log-level', 'warn'],
      {
        cwd: directory,
        env: {
          PATH: '/usr/bin:/bin',
          DATABASE_URL: databaseUrl,
          PONDER_TELEMETRY_DISABLED: 'true',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-2_000);
      });
    const exited = once(child, 'exit');
    let peakBytes = 0;
    try {
      for (;;) {
        if (child.exitCode !== null) throw new Error(`ponder ended with ${child.exitCode}: ${output}`);
        if (performance.now() - startMs > RUN_TIMEOUT_MS)
          throw new Error(`ponder did not get there: ${output}`);
        peakBytes = Math.max(peakBytes, await readRss(child.pid!));
        // Cheap while it runs: the planner's estimate; exact once it may be there.
        const { rows } = await pool
          .query<{ n: number }>('select count(*)::integer as n from bench.transfer')
          .catch(() => ({ rows: [{ n: 0 }] }));
        if (rows[0]!.n >= events) return { seconds: (performance.now() - startMs) / 1000, peakBytes };
        await delay(rows[0]!.n > events / 2 ? POLL_MS * 5 : POLL_MS * 10);
      }
    } finally {
      child.kill('SIGKILL');
      await exited;
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Resident memory of a process, from /proc. */
export async function readRss(pid: number): Promise<number> {
  const { readFile } = await import('node:fs/promises');
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}
