/**
 * What messages, answers and refusals look like, without what checks signatures, proofs and scores: a process that never checks
 * one starts without the curves.
 */

export { AggregateContent, parseAggregateContent, whyTooLarge } from './content/aggregate.ts';
export { DOMAINS_KEY, parseDomainName } from './content/domain-name.ts';
export { EnvelopeShape, MessageShape } from './content/envelope-shape.ts';
export { ForgetContent, parseForgetContent } from './content/forget.ts';
export * from './content/instance.ts';
export { IpfsPinContent, parseIpfsPinContent } from './content/ipfs-pin.ts';
export * from './content/network.ts';
export { normaliseAddress, ownerOf } from './content/on-behalf.ts';
export * from './content/post.ts';
export * from './content/program.ts';
export * from './content/sizes.ts';
export { parseStoreContent, StoreContent } from './content/store.ts';
export * from './content/webhook.ts';
export { whyTooLongWrittenOut } from './content/written-out.ts';
export * from './credit/amounts.ts';
export * from './credit/content.ts';
export * from './credit/costs.ts';
export * from './credit/prices.ts';
export * from './credit/shown.ts';
export {
  AppError,
  ERRORS,
  type ErrorBody,
  type ErrorCode,
  type ErrorKind,
  isClockFault,
  isErrorCode,
} from './errors.ts';
export {
  checksumAddress,
  type EvmAddress,
  evmAddressOf,
  parseEvmAddress,
  parseTypedEvmAddress,
} from './evm/address.ts';
export { personalSignDigest } from './evm/personal-digest.ts';
export {
  type ItemHash,
  itemHashOf,
  keccak256,
  parseItemHash,
  readItemHash,
  sha256Hex,
  sha256HexOf,
} from './hash.ts';
export { bytesToHex, hexToBytes } from './hex.ts';
export { hasHostname, hostnameOf, prefixOfHostname } from './hostname.ts';
export { checkImage, DEPLOYED_IMAGES, IMAGE_ALIASES, IMAGE_NAMES, IMAGES, isBeyondStart } from './images.ts';
export {
  type InstanceAddress,
  instanceAddress,
  isInstanceAddress,
  parseIpv6Prefix,
} from './instance-address.ts';
export { canonicalJson } from './json/canonical.ts';
export { parseExactJson } from './json/exact.ts';
export { type Fields, fieldsOf } from './json/fields.ts';
export { checkJsonDepth, scanJson, scanJsonObject } from './json/scan.ts';
export { LIMITS } from './limits.ts';
export * from './measurement/report.ts';
export * from './network-form/item-hash.ts';
export { createCheck, createParser, describeMismatch } from './schema.ts';
export * from './views.ts';
