import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKSUMS } from '@skerry/console';
import { releaseDebian } from './debian/build.ts';
import { releaseImage } from './image/build.ts';
import { releaseConsole } from './release/console.ts';
import { releasePackages } from './release/npm.ts';
import { releasePlanes } from './release/planes.ts';
import { createRelease, type Release, writeChecksums } from './release/release.ts';
import { signChecksums, verifyRelease } from './release/sign.ts';
import { releaseSite } from './site/build.ts';
import { ROOT } from './source.ts';
import { parseCommand } from './usage.ts';

interface Part {
  readonly what: string;
  /** Gives the names of the files that it made; the parts before it are there. */
  readonly make: (release: Release) => readonly string[] | Promise<readonly string[]>;
}

/** In the order in which one needs the other. */
const PARTS: Readonly<Record<string, Part>> = {
  npm: { what: 'npm packages: skerry, @skerry/client, @skerry/protocol', make: releasePackages },
  console: {
    what: 'the console as files, for any web server',
    make: releaseConsole,
  },
  planes: {
    what: 'the native data plane of the gateway for x64 and arm64, static, as compilers are here',
    make: releasePlanes,
  },
  deb: {
    what: "Debian packages for this machine's architecture: skerry, skerry-compute",
    make: releaseDebian,
  },
  image: {
    what: "a container image for this machine's architecture: every daemon but the compute node",
    make: releaseImage,
  },
  site: { what: 'the documentation, as a static site, also in build/site/', make: releaseSite },
};

const list = Object.entries(PARTS).map(([name, { what }]) => `  ${name.padEnd(10)} ${what}`);
const USAGE = `npm run release [-- [PART ...] [--json]]

Makes what is handed out of this commit, in build/release/: packages, what is inside each of them
(*.cdx.json, CycloneDX), and ${CHECKSUMS}. Without a PART all of them are made anew; with one, the
others stay as they are.

${list.join('\n')}

  --sign FILE  sign ${CHECKSUMS} with the private key in FILE ("skerry key export" writes one)
  --verify DIR check a release instead: who signed its checksums, and that its files are what they say
  --by ADDRESS with --verify: who has to have signed it
  --json       what was made, as JSON
  -h, --help   this text

The same commit gives the same bytes: file times are the commit's, or SOURCE_DATE_EPOCH.
docs/contributing.md tells how a release is made.`;
const { values, positionals } = parseCommand(USAGE, {
  options: {
    json: { type: 'boolean', default: false },
    sign: { type: 'string' },
    verify: { type: 'string' },
    by: { type: 'string' },
  },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !Object.hasOwn(PARTS, name));

if (unknown.length > 0) {
  console.error(`there is no part ${unknown.join(', ')}\n\n${USAGE}`);
  process.exitCode = 2;
} else if (values.verify !== undefined) {
  const address = verifyRelease(values.verify, values.by);
  if (values.json) console.log(JSON.stringify({ directory: values.verify, signed_by: address }));
  else console.log(`every file is what ${CHECKSUMS} says, which ${address} signed`);
} else {
  const release = createRelease(join(ROOT, 'build'));
  if (positionals.length === 0) rmSync(release.files, { recursive: true, force: true });
  const made: string[] = [];
  for (const [name, { make }] of Object.entries(PARTS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    const files = await make(release);
    if (!values.json) console.log(`${name}:\n${files.map((file) => `  ${file}`).join('\n')}`);
    made.push(...files);
  }
  writeChecksums(release);
  const signed = values.sign === undefined ? [] : [signChecksums(release, values.sign)];
  if (values.json)
    console.log(JSON.stringify({ directory: release.files, files: [...made, CHECKSUMS, ...signed] }));
  else console.log(`in ${release.files}, with ${[CHECKSUMS, ...signed].join(' and ')}`);
}
