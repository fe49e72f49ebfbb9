export {
  type CallInput,
  type CallOptions,
  call,
  callDated,
  callRaw,
  callRows,
  createAnswerParser,
  type UnreadableRow,
  urlOfCall,
} from './call.ts';
export {
  type AnnouncedNode,
  type Announcement,
  AnnouncementReader,
  findAnnouncement,
  readAnnouncedNodes,
  readAnnouncements,
} from './compute/announced-nodes.ts';
export { type ComputeNode, findNode, findNodeUrl, nodeOfRunner } from './compute/compute-node.ts';
export { MachineClient, readLogFrame } from './compute/machine-client.ts';
export { type ProgramLog, readProgramLogs } from './compute/program-logs.ts';
export {
  CoreClient,
  type CoreClientOptions,
  type SubmittedMessage,
} from './core-client.ts';
export { type WatchOptions, watchEvents } from './events.ts';
export type { OpenFile } from './files/stored-file.ts';
export { PARTS_FROM_BYTES, type SendRest, storeInParts } from './files/upload.ts';
export { checkStored } from './files/upload-hash.ts';
export { GatewayClient } from './gateway-client.ts';
export {
  DEFAULT_CHANNEL,
  type MessageDraft,
  requestMessage,
  type SignedBody,
  signMessage,
} from './message.ts';
export {
  buildNetworkMessage,
  buildStoredMessage,
  type NetworkBody,
  type NetworkDraft,
  type Publication,
  publishMessage,
  type StoredNetworkBody,
} from './network-message.ts';
export {
  type DifferingMessage,
  diffNodes,
  type ForgottenDifference,
  type NodeDifference,
} from './node-diff.ts';
export { type NodeNames, type OperationToSign, OwnerPass } from './owner-pass.ts';
export { readPages } from './pages.ts';
export { type ChosenField, readChosenInstance } from './proofs/chosen-instance.ts';
export {
  type ChainedConfirmation,
  type Confirmation,
  proveConfirmation,
} from './proofs/confirmation.ts';
export { verifyDated } from './proofs/dated-message.ts';
export { type Delegation, proveDelegation } from './proofs/delegation.ts';
export { isLaterSaid, readSaidAllocation, type SaidAllocation } from './proofs/said-placement.ts';
export {
  type AloneBudget,
  proveToldInstance,
  READ_ALONE_MAX,
  UNPROVEN,
} from './proofs/told-instance.ts';
export { readAggregate } from './reads/aggregate.ts';
export { CoreReader, type CoreReaderOptions } from './reads/core-reader.ts';
export type { InstanceList } from './reads/instance-list.ts';
export { createPatience, type Patiently } from './reads/patience.ts';
export { saysNothing } from './reads/says-nothing.ts';
export { type RecomputedDerived, recomputeDerivedDigests } from './recompute-derived.ts';
export {
  type RecomputedDigest,
  type RecomputedInstances,
  type RecomputeOptions,
  recomputeInstancesDigest,
  recomputeMessagesDigest,
} from './recompute-digest.ts';
export { type RecomputedParts, verdictOnState, wordsOnUnproven } from './recomputed-verdict.ts';
export {
  type AskText,
  askTextBy,
  type RequestOptions,
  readRefusal,
  request,
  type Sent,
  type TextAnswer,
} from './request.ts';
export {
  type ComputedScores,
  computeScores,
  computeScoresOf,
  type OnHour,
  type ScoresContent,
  type ScoringTerms,
} from './scoring/compute.ts';
export { type LastScores, type OddPublication, readLastScores } from './scoring/last.ts';
export { publishScores, type ScoresPublication } from './scoring/publish.ts';
export {
  type RefusedMessage,
  readMetricsMessages,
  readNewestMetrics,
  readRegistrations,
  readVersionTable,
  type ScoringSource,
} from './scoring/published.ts';
export { readSignedReleases } from './scoring/signed-releases.ts';
export {
  type PublishedScores,
  readPublishedScores,
  readTerms,
  signedRows,
  type Verification,
  verifyScores,
} from './scoring/verify.ts';
export { type ListedMessage, listedOf, type SignedMessageSource, verifyListed } from './signed-message.ts';
export { type AskedSigner, createSigner, generatePrivateKey, type Signer } from './signer.ts';
export {
  createWallet,
  type EvmTransaction,
  type SignedTransaction,
  type Wallet,
} from './transaction.ts';
