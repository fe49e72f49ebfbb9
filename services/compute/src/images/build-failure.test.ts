import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { buildFailureOf, explainBuild } from './build-failure.ts';
import { findRecipe } from './recipe.ts';

const MIRROR = 'http://nowhere.invalid/debian';
const mirrors = {
  debianMirror: MIRROR,
  debianSecurityMirror: 'http://security.example/debian',
  ubuntuMirror: 'http://ubuntu.example',
  ubuntuSecurityMirror: 'http://ubuntu.example',
};
const RECIPE = findRecipe('debian:12', mirrors);
/** As mmdebstrap ends when it fails. */
const failed = (...lines: string[]) =>
  [
    "setpriv failed with code 25: I: chroot architecture amd64 is equal to the host's architecture",
    'I: running apt-get update...',
    ...lines,
    'E: Some index files failed to download. They have been ignored, or old ones used instead.',
    'E: apt-get update --error-on=any -oAPT::Status-Fd=<$fd> -oDpkg::Use-Pty=false failed',
    'I: main() received signal PIPE: waiting for setup...',
    'E: mmdebstrap failed to run',
  ].join('\n');

test('a build that failed says why in a sentence, without what went well before it', () => {
  const { message, hint } = explainBuild(
    RECIPE,
    failed(
      'Ign:1 http://nowhere.invalid/debian bookworm InRelease',
      `E: Failed to fetch ${MIRROR}/dists/bookworm/InRelease  Could not resolve 'nowhere.invalid'`,
      `E: Failed to fetch ${MIRROR}/dists/bookworm/InRelease  Could not resolve 'nowhere.invalid'`,
    ),
  );
  assert.equal(
    message,
    `debian:12 cannot be built from the packages of ${MIRROR} and http://security.example/debian: ` +
      `Failed to fetch ${MIRROR}/dists/bookworm/InRelease: Could not resolve 'nowhere.invalid'`,
  );
  assert.match(hint, /name servers.*SKERRY_COMPUTE_DEBIAN_MIRROR and SKERRY_COMPUTE_DEBIAN_SECURITY_MIRROR/);
});

test('and what to do about it', () => {
  const cases: [complaint: string, hint: RegExp][] = [
    [
      `E: Failed to fetch ${MIRROR}  Could not connect to 127.0.0.1:9 (111: Connection refused)`,
      /curl -I http/,
    ],
    ['E: Release file for x is not valid yet (invalid for another 3d)', /clock/],
    [
      "E: The following signatures couldn't be verified: NO_PUBKEY 0E98404D386FA1D9",
      /debian-archive-keyring/,
    ],
    [`E: The repository '${MIRROR} bookworm Release' does not have a Release file.`, /all of bookworm/],
    ['E: Failed to fetch x  Hash Sum mismatch', /some minutes/],
    ['unshare: unshare failed: Operation not permitted', /containers/],
    ['E: something new', /skerry image build/],
  ];
  for (const [complaint, hint] of cases) assert.match(explainBuild(RECIPE, failed(complaint)).hint, hint);
});

test('many complaints are counted, and a program that says nothing of the kind is quoted by its last line', () => {
  const many = explainBuild(RECIPE, failed(...[1, 2, 3, 4, 5].map((at) => `E: complaint ${at}`)));
  assert.match(many.message, /: complaint 1; complaint 2; complaint 3 \(and 2 more\)$/);
  const other = explainBuild(findRecipe('ubuntu:24.04', mirrors), 'mke2fs failed with code 1: \nbad things');
  assert.match(other.message, /: bad things$/);
  assert.match(explainBuild(RECIPE, failed()).message, /: Some index files failed/);
});

test('what is wrong with the machine is told as that', () => {
  for (const code of ['STORAGE_FULL', 'HOST_NOT_READY'] as const) {
    const error = new AppError(code, 'x');
    assert.equal(buildFailureOf(RECIPE, error), error);
  }
  const error = buildFailureOf(RECIPE, new AppError('INTERNAL', failed('E: no')));
  assert.ok(error instanceof AppError && error.code === 'IMAGE_UNAVAILABLE' && error.cause !== undefined);
});
