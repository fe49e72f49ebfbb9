import { startDevnet } from '../devnet.ts';
import { ANY_PORTS, TEST_DAEMON } from './network.ts';

const devnet = await startDevnet({
  command: [process.execPath, TEST_DAEMON],
  environment: { TEST_BEHAVIOUR: process.argv[3] ?? '{}' },
  dataDir: process.argv[2]!,
  ports: ANY_PORTS,
});
console.log(JSON.stringify([...devnet.processes.values()].map(({ pid }) => pid)));
