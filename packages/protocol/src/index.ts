export {
  CHAINS,
  familyOf,
  type PersonalCheck,
  parseAccountAddress,
  type SignatureFamily,
  type SigningContext,
} from './chains.ts';
export {
  type Act,
  type Acting,
  AUTHORIZATIONS,
  aggregateKeyOf,
  aggregateSubject,
  authorizationsAt,
  decisiveFor,
  findRefusal,
  isAuthorization,
  isAuthorized,
  narrowTo,
  parseAuthorizations,
  type Refusal,
  SECURITY_KEY,
  type SecurityElement,
  securityAt,
  whyNotUnderstood,
} from './content/permissions.ts';
export * from './credit/estimate.ts';
export * from './credit/ledger.ts';
export { DIAGNOSTIC_VM, DIAGNOSTIC_VMS, programAddress } from './diagnostic.ts';
export { ANY_TIME, type Dated, effectiveTime, isLate } from './effective-time.ts';
export { type MessageForm, type VerifiedMessage, verifyEnvelope } from './envelope.ts';
export { evmAddressOf } from './evm/address.ts';
export {
  type PersonalClaim,
  readPersonalClaim,
  recoverPersonalKey,
  recoverPersonalSigner,
} from './evm/personal-sign.ts';
export * from './forms.ts';
export {
  AWAITING_NODE,
  foldAllocation,
  foldControl,
  foldInstance,
  foldStatus,
  foldUpdate,
  type InstanceFold,
} from './instances/fold.ts';
export {
  type InstanceDifference,
  type InstanceVerdict,
  proveInstance,
  type ToldInstance,
} from './instances/prove.ts';
export { type InstanceMessage, readInstanceMessage } from './instances/read.ts';
export type { InstanceStamps, InstanceState } from './instances/state.ts';
export { instanceViewOf } from './instances/view.ts';
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
export { cidOfFile, isFileCid } from './network-form/file-cid.ts';
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
export * from './scoring/counting.ts';
export type { HourDetail, NodeStatus } from './scoring/node-fold.ts';
export { QUALITY_PARTS, type QualityPart } from './scoring/quality.ts';
export * from './scoring/score-rows.ts';
export * from './scoring/scorer.ts';
export { type ComputeScore, type CoreScore, SCORE_CODES, type ScoreView } from './scoring/scores.ts';
export * from './scoring/settings.ts';
export * from './scoring/versions.ts';
export { leastHoursFor } from './scoring/weights.ts';
export { verifySubmission } from './submission.ts';
export * from './sync/codec.ts';
export {
  DERIVED_KINDS,
  type DerivedDigests,
  type DerivedKind,
  type DerivedTrust,
  derivedDigestsOf,
  derivedFactsOf,
} from './sync/derived.ts';
export * from './sync/files.ts';
export {
  type Bound,
  boundBetween,
  compareBounds,
  compareBytes,
  compareKeys,
  END,
  type ForgottenFields,
  forgottenKeyOf,
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
export { instanceElement, messageElement, type SetDigest, SetSum } from './sync/set-digest.ts';
export * from './sync/shared.ts';
export { itemHashOfUpload, verifyUpload } from './upload.ts';
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
