import { benchIngest } from './ingest.ts';
import { benchVerify } from './verify.ts';
import { benchWebhooks } from './webhooks.ts';

/** `npm run bench -- NAME`: figures as ratios to a peer or a limit that is measured in the same run. */
const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  ingest: benchIngest,
  verify: benchVerify,
  webhooks: benchWebhooks,
};

const name = process.argv[2] ?? '';
const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
if (bench) await bench();
else {
  console.error(`npm run bench -- NAME, where NAME is one of: ${Object.keys(BENCHES).join(', ')}`);
  process.exitCode = 2;
}
