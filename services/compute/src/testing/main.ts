// Runs the compute node alone, for tests that start it and kill it.
import { runService } from '@skerry/kit';
import { computeService } from '../index.ts';

process.exit(await runService(computeService, process.env));
