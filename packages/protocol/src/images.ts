import { AppError, ERRORS, isErrorCode } from './errors.ts';
import { isItemHash64 } from './network-form/item-hash.ts';

/** Names without a version, and what they mean now. */
export const IMAGE_ALIASES: Readonly<Record<string, string>> = { ubuntu: 'ubuntu:24.04' };

/** What compute nodes make images of. Every image beside them is a file of the network, named by a hash. */
export const IMAGES = ['debian:12', 'debian:13', 'ubuntu:24.04'] as const;
export const IMAGE_NAMES: readonly string[] = [...IMAGES, ...Object.keys(IMAGE_ALIASES)];

/**
 * Disk images of the deployed network that its SDKs name by default, and what stands in for them here; an operator may
 * say otherwise.
 */
export const DEPLOYED_IMAGES: Readonly<Record<string, (typeof IMAGES)[number]>> = {
  f7e68c568906b4ebcd3cd3c4bfdff96c489cd2a9ef73ba2d7503f244dfd578de: 'debian:12',
  b6ff5c3a8205d1ca4c7c3369300eeafff498b558f71b851aa2114afd0a532717: 'debian:12',
  '5330dcefe1857bcd97b7b7f24d1420a7d46232d53f27be280c8a7071d88bd84e': 'ubuntu:24.04',
};

/** Throws UNKNOWN_IMAGE, naming those there are, for what no compute node can start. */
export function checkImage(name: string): void {
  if (IMAGE_NAMES.includes(name) || isItemHash64(name)) return;
  throw new AppError(
    'UNKNOWN_IMAGE',
    `there is no image ${JSON.stringify(name)}; there is ${IMAGE_NAMES.join(', ')}, and any disk that is stored on the network, by its hash`,
  );
}

/**
 * Whether an instance that failed can never start as it is: whatever its node has, the instance itself is at fault. It
 * holds no room, and nobody is led to it.
 */
export const isBeyondStart = (phase: string, reason: { readonly code: string } | null): boolean =>
  phase === 'failed' && reason !== null && isErrorCode(reason.code) && ERRORS[reason.code].kind === 'invalid';
