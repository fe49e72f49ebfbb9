import { loadService } from '../../apps/cli/src/network/daemon.ts';
import { DAEMON_NAMES } from '../../apps/cli/src/network/daemon-names.ts';

/**
 * Loads what most end-to-end tests start, and ends: Node keeps what it compiled (NODE_COMPILE_CACHE). Otherwise the first network of a
 * run compiles the same in each of its daemons at once, since none knows yet what the others do.
 */
await import('../../apps/cli/src/network/up.ts');
for (const name of DAEMON_NAMES) await loadService(name);
// A service may have begun something as it was loaded.
process.exit();
