import { readEnvironment } from './config.ts';
import { runCommandLine } from './run.ts';

const exitCode = await runCommandLine(process.argv.slice(2), {
  environment: readEnvironment(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
});
process.exitCode = exitCode;
// A parent's channel (a devnet, the launcher) would keep this process alive although its work is done.
if (process.connected) process.disconnect?.();
