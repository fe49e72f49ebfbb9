import { parseArgs } from 'node:util';
import { soakHellos } from './soak/hellos.ts';
import { soakHttpHeads } from './soak/http-heads.ts';
import type { SoakOptions } from './soak/options.ts';
import { soakPlane } from './soak/plane.ts';

/** `npm run soak [-- NAME ...] [--seconds N] [--seed N]`: what tests do briefly, for as long as wanted. */
const SOAKS: Readonly<Record<string, (options: SoakOptions) => Promise<void>>> = {
  hellos: soakHellos,
  'http-heads': soakHttpHeads,
  plane: soakPlane,
};

const { values, positionals } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } },
  allowPositionals: true,
});
const options = { seconds: Number(values.seconds), seed: Number(values.seed ?? Date.now() % 2 ** 31) };
const names = positionals.length > 0 ? positionals : Object.keys(SOAKS);
const isKnown = names.every((name) => Object.hasOwn(SOAKS, name));
if (!isKnown || !(options.seconds > 0)) {
  console.error(
    `npm run soak -- [NAME ...] [--seconds N] [--seed N], where NAME is one of: ${Object.keys(SOAKS).join(', ')}`,
  );
  process.exitCode = 2;
} else {
  for (const name of names) {
    console.log(`${name}: ${options.seconds} s, seed ${options.seed}`);
    await SOAKS[name]!(options);
  }
}
