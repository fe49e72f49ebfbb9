// One bench in a process of its own, so that what it leaves behind, or pins to a processor, touches no other one. Its lines
// go to standard output; its figures go to the process that started it.
import { BENCHES } from './benches.ts';
import { Figures } from './measure/figures.ts';

const [name = '', ...args] = process.argv.slice(2);
const bench = BENCHES[name];
const send = process.send?.bind(process);
if (!bench || !send) throw new Error('this is started by bench/run.ts');
const figures = new Figures(console.log);
await (await bench.load())(figures, args);
send({ figures: figures.rows, lacking: figures.lacking }, undefined, undefined, () => process.disconnect?.());
