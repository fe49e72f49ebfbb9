import { join } from 'node:path';
import { buildSite } from './site/build.ts';
import { ROOT } from './source.ts';
import { parseCommand } from './usage.ts';

const USAGE = `npm run site [-- [--base PATH] [--json]]

Builds the documentation into build/site/: the pages of docs/, the reference of the HTTP interfaces
and of the commands, and a search. Any web server can serve the folder. The generator (VitePress) is
installed in build/site-source/ when it is first needed.

  --base PATH  where it will be served (default /)
  --json       where it is, as JSON
  -h, --help   this text

docs/contributing.md tells where pages belong.`;
const { values } = parseCommand(USAGE, {
  options: { base: { type: 'string', default: '/' }, json: { type: 'boolean', default: false } },
});

if (!/^\/(?:[\w.-]+\/)*$/.test(values.base)) {
  console.error(`--base must begin and end with a slash, such as /docs/, not ${values.base}\n\n${USAGE}`);
  process.exitCode = 2;
} else {
  const directory = await buildSite(join(ROOT, 'build'), values.base);
  console.log(values.json ? JSON.stringify({ directory, base: values.base }) : `in ${directory}`);
}
