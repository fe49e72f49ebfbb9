import { closeSync, openSync } from 'node:fs';
import { runBriefly } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { NativeDataPlane } from '../plane.ts';

/** A process of its own, which may have few descriptors: its plane falls while it has none left. */

const taken: number[] = [];
let failure: Error | undefined;
await using plane = new NativeDataPlane({
  ...{ hosts: ['127.0.0.1'], httpPort: 0, httpsPort: 0, upstreamHttpPort: 1, upstreamHttpsPort: 1 },
  explain: (hostname) => ({ code: 'HOSTNAME_NOT_FOUND', message: hostname }),
  path: process.argv[2]!,
  onTrouble: (details) => {
    failure ??= (details as { readonly err?: Error }).err;
  },
});

function takeAll(): void {
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error;
  }
}

await plane.listen();
takeAll();
// Its pipes are too few for another one's.
process.kill(plane.pid!, 'SIGKILL');
const { message } = await until('it cannot be started', () => failure);
const { said } = await runBriefly('true', []);
for (const fd of taken) closeSync(fd);
await until('it is started', () => plane.pid);
console.log(`${message}\n${said}\nit runs again`);
