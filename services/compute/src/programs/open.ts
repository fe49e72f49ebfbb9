import type { CoreClient } from '@skerry/client';
import type { HttpServer, Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { checkCaughtUp, type SyncCheck } from '../caught-up.ts';
import type { ComputeConfig } from '../config.ts';
import { clearLeftGroups } from '../groups/left-groups.ts';
import { decideVolumesGib } from '../host/capacity.ts';
import { asStorageFull } from '../host/disk-full.ts';
import { listMissingSandboxPrograms } from '../host/preflight.ts';
import { loadDiagnosticPrograms } from './diagnostic.ts';
import { Programs, volumesDirectory } from './programs.ts';
import { RunReports } from './reports.ts';
import { addProgramRoutes, type ClientOf, refusePrograms } from './routes.ts';
import { runStanding } from './standing/open.ts';
import { readTakenMib } from './volumes/room.ts';
import { sweepVolumes } from './volumes/sweep.ts';

export interface ProgramServiceOptions {
  readonly config: ComputeConfig;
  readonly core: CoreClient;
  readonly sync: SyncCheck;
  readonly nodeId: string;
  /** What the disk has; enough by default. */
  readonly freeGib?: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** What programs a node runs; why it runs none. */
export interface ProgramAbility {
  readonly runtimes: readonly string[];
  readonly reason: string | null;
}

/** Programs as the composition of the node sees them. */
export interface ProgramService extends AsyncDisposable {
  /** What the node announces: `program:` and a runtime. Empty where it runs none. */
  readonly features: readonly string[];
  readonly ability: ProgramAbility;
  readonly programs: Programs | undefined;
  /** What programs may have together; no virtual machine is promised it. */
  readonly memoryMib: number;
  /** What their volumes may take of the disk beside what they have. */
  readonly diskGib: number;
  addRoutes(app: HttpServer, clientOf: ClientOf): Promise<void>;
  /** Reports runs, and runs what is to run by itself, until the signal ends. */
  work(): Promise<void>;
}

function refuseAll(reason: string): ProgramService {
  const refuse = () => {
    throw new AppError('NO_RUNNER', `this node runs no programs: ${reason}`);
  };
  return {
    features: [],
    ability: { runtimes: [], reason },
    programs: undefined,
    memoryMib: 0,
    diskGib: 0,
    addRoutes: async (app) => refusePrograms(app, refuse),
    async work() {},
    async [Symbol.asyncDispose]() {},
  };
}

async function findObstacle({ programs }: ComputeConfig): Promise<string | undefined> {
  if (!programs) return 'programs are turned off (SKERRY_COMPUTE_PROGRAMS)';
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'programs require Linux on x86_64';
  if (process.geteuid?.() !== 0)
    return 'creating sandboxes requires root; start the compute node as root (sudo)';
  const missing = await listMissingSandboxPrograms();
  return missing.length > 0 ? `missing programs: ${missing.join(', ')}` : undefined;
}

/** The programs of this node, once a first sandbox has answered. */
async function openChecked(
  { config, core, sync, nodeId, freeGib = Infinity, log }: ProgramServiceOptions,
  reports: RunReports,
): Promise<Programs> {
  const takenGib = (await readTakenMib(volumesDirectory(config.dataDir))) / 1_024;
  const programs = Programs.open({
    ...{
      core,
      checkLag: () => checkCaughtUp(sync),
      nodeId,
      log,
      dataDir: config.dataDir,
      cacheDir: config.cacheDir,
    },
    runtimeTable: config.programRuntimes,
    memoryMib: config.programMemoryMib,
    volumesGib: decideVolumesGib(config.programVolumesGib, freeGib + takenGib),
    spares: config.programSpares,
    idleMs: config.programIdleSeconds * 1000,
    onRun: (run) => reports.add(run),
  });
  try {
    await programs.volumes.clear();
    await programs.check();
    return programs;
  } catch (error) {
    await programs[Symbol.asyncDispose]();
    throw error;
  }
}

/** What runs programs, or what says why this node runs none. */
export async function openPrograms(options: ProgramServiceOptions): Promise<ProgramService> {
  const { config, core, sync, nodeId, log, signal } = options;
  // Also where it runs programs no more, or is started elsewhere than the one before it.
  await clearLeftGroups(config.dataDir);
  const obstacle = await findObstacle(config);
  if (obstacle !== undefined) {
    log.warn({ obstacle }, 'this node runs no programs');
    return refuseAll(obstacle);
  }
  const reports = new RunReports({ core, log, signal });
  let programs: Programs;
  try {
    programs = await openChecked(options, reports);
  } catch (thrown) {
    const error = asStorageFull(thrown);
    if (!(error instanceof AppError)) throw error;
    log.warn({ err: error }, 'this node runs no programs');
    return refuseAll(error.message);
  }
  return {
    features: programs.runtimes.map((runtime) => `program:${runtime}`),
    ability: { runtimes: programs.runtimes, reason: null },
    programs,
    memoryMib: config.programMemoryMib,
    diskGib: (await programs.volumes.leftMib()) / 1_024,
    async addRoutes(app, clientOf) {
      const diagnostics = await loadDiagnosticPrograms(nodeId);
      for (const program of diagnostics) programs.library.add(program);
      const hashes = diagnostics.map(({ hash }) => hash);
      addProgramRoutes(app, programs, clientOf, hashes);
    },
    work: async () => {
      const { dataDir } = config;
      await Promise.all([
        reports.work(),
        runStanding({ core, sync, programs, nodeId, dataDir, log, signal }),
        sweepVolumes({ core, sync, volumes: programs.volumes, log, signal }),
      ]);
    },
    [Symbol.asyncDispose]: () => programs[Symbol.asyncDispose](),
  };
}
