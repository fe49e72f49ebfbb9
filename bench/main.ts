import { benchIngest } from './ingest.ts';
import { benchScore } from './score.ts';
import { benchVerify } from './verify.ts';

/** `npm run bench -- NAME`: figures as ratios to a peer or a limit that is measured in the same run. */
const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  ingest: benchIngest,
  score: benchScore,
  verify: benchVerify,
};

const name = process.argv[2] ?? '';
const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
if (bench) await bench();
else {
  console.error(`npm run bench -- NAME, where NAME is one of: ${Object.keys(BENCHES).join(', ')}`);
  process.exitCode = 2;
}
