export { CHAINS, familyOf, type SignatureFamily, type SigningContext } from './chains.ts';
export { AggregateContent, parseAggregateContent } from './content/aggregate.ts';
export { ForgetContent, parseForgetContent } from './content/forget.ts';
export * from './content/instance.ts';
export { IpfsPinContent, parseIpfsPinContent } from './content/ipfs-pin.ts';
export * from './content/network.ts';
export { normaliseAddress, ownerOf } from './content/on-behalf.ts';
export * from './content/post.ts';
export * from './content/program.ts';
export { parseStoreContent, StoreContent } from './content/store.ts';
export * from './content/webhook.ts';
export * from './credit/amounts.ts';
export * from './credit/content.ts';
export * from './credit/costs.ts';
export * from './credit/estimate.ts';
export * from './credit/ledger.ts';
export * from './credit/prices.ts';
export { DIAGNOSTIC_VM, DIAGNOSTIC_VMS, programAddress } from './diagnostic.ts';
export { type Dated, effectiveTime, isLate } from './effective-time.ts';
export {
  EnvelopeShape,
  type MessageForm,
  MessageShape,
  type VerifiedMessage,
  verifyEnvelope,
} from './envelope.ts';
export { AppError, ERRORS, type ErrorBody, type ErrorCode, type ErrorKind, isErrorCode } from './errors.ts';
export { checksumAddress, type EvmAddress, evmAddressOf, parseEvmAddress } from './evm/address.ts';
export { personalSignDigest, recoverPersonalSigner } from './evm/personal-sign.ts';
export { type ItemHash, itemHashOf, keccak256, parseItemHash, sha256Hex, sha256HexOf } from './hash.ts';
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
export { type Fields, fieldsOf } from './json/fields.ts';
export { scanJsonObject } from './json/scan.ts';
export { LIMITS } from './limits.ts';
export * from './measurement/report.ts';
export type { NetworkAggregateContent } from './network-form/content/aggregate.ts';
export type { NetworkForgetContent } from './network-form/content/forget.ts';
export type { NetworkInstanceContent } from './network-form/content/instance.ts';
export type { NetworkVolume } from './network-form/content/machine.ts';
export type { NetworkPostContent } from './network-form/content/post.ts';
export type { NetworkProgramContent } from './network-form/content/program.ts';
export type { NetworkStoreContent } from './network-form/content/store.ts';
export * from './network-form/content.ts';
export * from './network-form/convert.ts';
export * from './network-form/estimate.ts';
export * from './network-form/item-hash.ts';
export * from './network-form/message.ts';
export * from './node-proof.ts';
export {
  type ExpectedOperation,
  OPERATION_WINDOW_MS,
  OWNER_HEADERS,
  type OwnerOperation,
  type SignedPart,
  verifyOwnerPass,
} from './owner-pass.ts';
export { createCheck, createParser, describeMismatch } from './schema.ts';
export type { HourDetail, NodeStatus } from './scoring/node-fold.ts';
export { QUALITY_PARTS, type QualityPart } from './scoring/quality.ts';
export * from './scoring/scorer.ts';
export { type ComputeScore, type CoreScore, SCORE_CODES, type ScoreView } from './scoring/scores.ts';
export * from './scoring/settings.ts';
export * from './scoring/versions.ts';
export { verifySubmission } from './submission.ts';
export * from './sync/codec.ts';
export {
  type Bound,
  boundBetween,
  compareBounds,
  compareBytes,
  compareKeys,
  END,
  type ShortKey,
  START,
  SYNC_ID_BYTES,
  type SyncFields,
  type SyncKey,
  shortHashOf,
  shortKeyOf,
  syncHashOf,
  syncKeyOf,
  textOfShortKey,
  uncoveredText,
} from './sync/key.ts';
export * from './sync/ranges.ts';
export * from './sync/shared.ts';
export { verifyUpload } from './upload.ts';
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
