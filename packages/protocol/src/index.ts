export { CHAINS, familyOf, type SignatureFamily, type SigningContext } from './chains.ts';
export * from './content/instance.ts';
export * from './content/network.ts';
export * from './content/post.ts';
export * from './content/store.ts';
export { EnvelopeShape, MessageShape, type VerifiedMessage, verifyEnvelope } from './envelope.ts';
export { AppError, ERRORS, type ErrorBody, type ErrorCode, type ErrorKind, isErrorCode } from './errors.ts';
export { checksumAddress, type EvmAddress, evmAddressOf, parseEvmAddress } from './evm/address.ts';
export { personalSignDigest, recoverPersonalSigner } from './evm/personal-sign.ts';
export { type ItemHash, itemHashOf, parseItemHash, sha256Hex } from './hash.ts';
export { bytesToHex, hexToBytes } from './hex.ts';
export { hasHostname, hostnameOf, prefixOfHostname } from './hostname.ts';
export { type InstanceAddress, instanceAddress, parseIpv6Prefix } from './instance-address.ts';
export { scanJsonObject } from './json/scan.ts';
export { LIMITS } from './limits.ts';
export { createParser, describeMismatch } from './schema.ts';
export * from './views.ts';
export type { Ecvrf, VrfProver } from './vrf/ecvrf.ts';
export { loadVrfEngine } from './vrf/native.ts';
export { parseVrfRequest, type VrfRange, type VrfRequest, VrfRequestBody } from './vrf/request.ts';
export { pureVrfEngine, VRF_SUITES, type VrfEngine } from './vrf/suites.ts';
export {
  createVrfAnswer,
  type VrfAnswer,
  type VrfClaim,
  type VrfReason,
  type VrfReasonCode,
  type VrfVerdict,
  verifyVrfToken,
} from './vrf/token.ts';
export * from './vrf/views.ts';
