import { runService } from '@skerry/kit';
import { coreService } from '../index.ts';

/** A core node as a process of its own, for tests that kill it. */
process.exitCode = await runService(coreService, process.env);
