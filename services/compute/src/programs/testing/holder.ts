// Holds programs in sandboxes, one at work and one warm, until it is killed. Says where their control groups are.
import { setTimeout as delay } from 'node:timers/promises';
import { TestPrograms } from './setup.ts';

const room = await TestPrograms.open({ spares: 0 });
await room.run(room.add('python3', 'def main(v):\n  return 1'));
const busy = room.add('python3', 'def main(v):\n  print("busy", flush=True)\n  while True: pass', {
  timeoutSeconds: 3_600,
});
void room.outcomeOf(busy);
await room.run(room.add('nodejs', 'function main() { return 1; }'));
while (room.programs.listLog(busy).length === 0) await delay(20);
process.send?.({ nodeId: room.nodeId, groups: room.groupHomes[0] });
