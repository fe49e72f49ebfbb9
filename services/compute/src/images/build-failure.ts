import { AppError } from '@skerry/protocol';
import type { Recipe } from './recipe.ts';

/** Complaints that are told: the first ones say what is wrong, more of them only where else. */
const TOLD = 3;
const COMPLAINT_CHARS = 300;

/** What mmdebstrap and apt add to every failure: that there was one. */
const CHATTER =
  /^(?:Some index files failed to download|mmdebstrap failed to run|.*\bapt-get\b.* failed$|setup failed|run_setup failed|.*\bmain\(\) received signal)/;

interface Remedy {
  readonly words: RegExp;
  readonly hint: (mirrors: MirrorWords) => string;
}

interface MirrorWords {
  readonly mirror: string;
  readonly suite: string;
  readonly settings: string;
}

/** In the order in which they are looked for: a name server that is missing makes everything else fail, too. */
const REMEDIES: readonly Remedy[] = [
  {
    words: /Could not resolve|Temporary failure resolving|Name or service not known/,
    hint: ({ settings }) =>
      `see whether this computer's name servers answer (/etc/resolv.conf), or name another mirror with ${settings}`,
  },
  {
    words: /could not connect|unable to connect|connection (?:failed|refused|timed out)|timed? ?out/i,
    hint: ({ mirror, settings }) =>
      `see whether this computer reaches the mirror (curl -I ${mirror}/), or name another one with ${settings}`,
  },
  {
    words: /not valid yet|is expired|Expired/,
    hint: () => "see whether this computer's clock is right (date), and whether the mirror is up to date",
  },
  {
    words: /NO_PUBKEY|not signed|signatures? couldn't be verified|invalid signature/i,
    hint: ({ settings }) =>
      `the mirror is not signed with a key that this computer knows: install debian-archive-keyring, or name another mirror with ${settings}`,
  },
  {
    words:
      /404 +Not Found|does not have a Release file|Unable to locate package|has no installation candidate/,
    hint: ({ mirror, suite, settings }) =>
      `${mirror} does not have all of ${suite}: name another mirror with ${settings}`,
  },
  {
    words: /Hash Sum mismatch|File has unexpected size/,
    hint: () => 'the mirror is being updated, or a proxy changes what it says: try again in some minutes',
  },
  {
    words: /Operation not permitted|Permission denied|must be root|unshare:/,
    hint: () => 'building needs root and the right to mount file systems: containers usually lack it',
  },
];

const OTHERWISE =
  'try again with "skerry image build", which shows each step; the full output is in the log of whoever built it';

/** What programs complained of, without what they did before: `E: ...` of mmdebstrap and apt, or the last line. */
function complaintsOf(output: string): string[] {
  const lines = output.split('\n').map((line) => line.trim());
  const errors = lines.flatMap((line) => (line.startsWith('E: ') ? [line.slice('E: '.length)] : []));
  const told = [...new Set(errors.filter((line) => !CHATTER.test(line)))];
  const last = lines.findLast((line) => line !== '' && !line.startsWith('I: '));
  const shown =
    told.length > 0 ? told : errors.length === 0 && last !== undefined ? [last] : errors.slice(0, 1);
  return shown.map((line) => line.replace(/ {2,}/g, ': ').slice(0, COMPLAINT_CHARS));
}

/** Why an image could not be built, in one sentence, and what to do about it. Pure. @param output of the program that failed */
export function explainBuild(recipe: Recipe, output: string): { message: string; hint: string } {
  const { name, suite, mirror, securityMirror, distro } = recipe;
  const complaints = complaintsOf(output);
  const more = complaints.length > TOLD ? ` (and ${complaints.length - TOLD} more)` : '';
  const why = complaints.slice(0, TOLD).join('; ');
  const prefix = distro === 'ubuntu' ? 'SKERRY_COMPUTE_UBUNTU' : 'SKERRY_COMPUTE_DEBIAN';
  const words = { mirror, suite, settings: `${prefix}_MIRROR and ${prefix}_SECURITY_MIRROR` };
  return {
    message: `${name} cannot be built from the packages of ${mirror} and ${securityMirror}: ${why}${more}`,
    hint: REMEDIES.find((remedy) => remedy.words.test(output))?.hint(words) ?? OTHERWISE,
  };
}

/** What was tried, for whoever asked for the image and for whoever runs the machine. */
export function buildFailureOf(recipe: Recipe, error: unknown): unknown {
  if (!(error instanceof AppError) || error.code === 'STORAGE_FULL' || error.code === 'HOST_NOT_READY')
    return error;
  const { message, hint } = explainBuild(recipe, error.message);
  return new AppError('IMAGE_UNAVAILABLE', message, { cause: error, details: { hint } });
}
