export {
  type BackupEnd,
  type BackupHead,
  DATA_PREFIX,
  type DatabaseFacts,
  FORMAT,
  SETTINGS_PREFIX,
} from './backup/format.ts';
export {
  findKept,
  type Keeping,
  type Kept,
  type KeptKind,
  LOST_AND_FOUND,
  mayHold,
  RESTORING,
  RUNNING,
  replacedName,
} from './backup/keeping.ts';
export { type OpenBackup, openBackup } from './backup/read.ts';
export type { TarMember } from './backup/tar.ts';
export { type BackupMember, writeBackup } from './backup/write.ts';
export { cached, within } from './cached.ts';
export { findClosest } from './closest.ts';
export { type Document, writeDocument } from './contract/document.ts';
export { withExamples } from './contract/example.ts';
export { frontHandlers } from './contract/front.ts';
export { PAGE_HEADERS, renderNotice, wantsPage } from './contract/notice.ts';
export { referenceHandlers } from './contract/reference.ts';
export { renderReference } from './contract/reference-page.ts';
export {
  answer,
  expectAll,
  type Handlers,
  type ServeOptions,
  serve,
  serveAll,
} from './contract/serve.ts';
export * from './daemon/config.ts';
export { backoffMs, Failures, NotYetError } from './daemon/failures.ts';
export { createLogger, LOG_FORMATS, LOG_LEVELS, type Logger } from './daemon/log.ts';
export { describeFailedStart, describeLastWords, formatLogLine } from './daemon/log-line.ts';
export { lostLinesRecord } from './daemon/log-output.ts';
export { pause, persist, runLoop } from './daemon/loop.ts';
export { keepOwnKey } from './daemon/own-key.ts';
export { AWAIT_SETTINGS, awaitSettings, type SettingsWord } from './daemon/parent-settings.ts';
export { type SkerryPaths, skerryPaths } from './daemon/paths.ts';
export { isDataDirTaken, refuseHalfRestored, takeDataDir } from './daemon/presence.ts';
export { type Remark, Remarks } from './daemon/remarks.ts';
export { Rests } from './daemon/rests.ts';
export { type Host, LET_GO, type RunningService, runService, type Service } from './daemon/service.ts';
export { VERSION } from './daemon/version.ts';
export * from './files/files.ts';
export { followInFile } from './files/followed-file.ts';
export { asidePathOf, isForbidden, isLacking, readJsonOrSetAside, setAside } from './files/json-file.ts';
export { JsonLines } from './files/json-lines.ts';
export { escapeHtml } from './http/html.ts';
export { checkPort, explainListenFailure, findListenFailure, listen, urlOfListener } from './http/listen.ts';
export { createHttpObserver, createMetrics, type Metrics, type Readings } from './http/metrics.ts';
export type { HttpObserver } from './http/request-trace.ts';
export {
  createHttpServer,
  type HttpServer,
} from './http/server.ts';
export { endsWithAnswer } from './http/unwanted.ts';
export { takeUpgrade, type Upgrade, upgradeOf } from './http/upgrade.ts';
export { type Client, createClientOf } from './limits/client.ts';
export { FairSlots, type FairSlotsOptions } from './limits/fair-slots.ts';
export { gathered } from './limits/gathered.ts';
export { Holders } from './limits/holders.ts';
export { LowPriority } from './limits/low-priority.ts';
export {
  ClientTable,
  exemptHosts,
  type GeneralRateConfig,
  generalRateSettings,
  type RateLimitOptions,
  rateLimitsOf,
  rateSettings,
} from './limits/rate-limit.ts';
export { type Held, type NoShare, type ShareLimits, Shares } from './limits/shares.ts';
export { Slots } from './limits/slots.ts';
export { YieldingShares } from './limits/yielding-shares.ts';
export { type Compiled, compileNative, runBriefly } from './native/compile.ts';
export { APT_OPTIONS, findProgram, installPackages, isDebian } from './native/packages.ts';
export {
  type Answered,
  AskError,
  type Asker,
  type AskFailure,
  createAsker,
} from './net/ask.ts';
export {
  clientKeyOf,
  createAddressSet,
  networkKeyOf,
  rangeKeyOf,
  spellAddress,
} from './net/client-address.ts';
export { findFreePort } from './net/free-port.ts';
export { ownerOfUrl } from './net/owner.ts';
export { partsMaxOf } from './net/parts.ts';
export {
  createLookup,
  createReach,
  type Family,
  findAddresses,
  isPrivateIpv6,
  isPublicAddress,
  type MayReach,
  resolveName,
} from './net/reach.ts';
export { refuseUpgrade } from './net/refuse-upgrade.ts';
export { openSince, Since } from './since.ts';
