export { cached, within } from './cached.ts';
export { type ApiInfo, type Document, type DocumentOperation, writeDocument } from './contract/document.ts';
export { referenceHandlers } from './contract/reference.ts';
export { CONTENT_SECURITY_POLICY, renderReference } from './contract/reference-page.ts';
export {
  type Answer,
  answer,
  expectAll,
  type Handler,
  type Handlers,
  type Request,
  type ServeOptions,
  serve,
  serveAll,
} from './contract/serve.ts';
export * from './daemon/config.ts';
export { backoffMs, Failures, type FailuresOptions } from './daemon/failures.ts';
export { createLogger, type Logger } from './daemon/log.ts';
export { type LoopOptions, type PersistOptions, pause, persist, runLoop } from './daemon/loop.ts';
export { type SkerryPaths, skerryPaths } from './daemon/paths.ts';
export { Rests } from './daemon/rests.ts';
export { type Host, type RunningService, runService, type Service } from './daemon/service.ts';
export { VERSION } from './daemon/version.ts';
export {
  createFileAtomically,
  isMissing,
  loadOrCreateText,
  makeDirectory,
  readTextIfAny,
  renameDurably,
  syncDirectory,
  syncFile,
  writeFileAtomically,
} from './files/atomic-file.ts';
export { acquireLock, type Lock, type LockOptions } from './files/file-lock.ts';
export { JsonLines, type JsonLinesOptions } from './files/json-lines.ts';
export { createKeyFile, loadOrCreateKeyFile } from './files/key-file.ts';
export { escapeHtml } from './http/html.ts';
export { createHttpObserver, createMetrics, type Metrics } from './http/metrics.ts';
export type { HttpObserver } from './http/request-trace.ts';
export {
  asAppError,
  createHttpServer,
  errorBody,
  type HttpServer,
  type HttpServerOptions,
  listen,
  urlOfListener,
} from './http/server.ts';
export { takeUpgrade, type Upgrade, upgradeOf } from './http/upgrade.ts';
export { type Client, type ClientOptions, createClientOf } from './limits/client.ts';
export {
  ClientTable,
  type LimitedClass,
  type RateLimitOptions,
  rateLimitsOf,
  rateSettings,
} from './limits/rate-limit.ts';
export { type Held, type NoShare, type ShareLimits, Shares } from './limits/shares.ts';
export { Slots, type SlotsOptions } from './limits/slots.ts';
export {
  type Answered,
  AskError,
  type Asker,
  type AskFailure,
  type AskOptions,
  createAsker,
} from './net/ask.ts';
export { type AddressSet, clientKeyOf, createAddressSet } from './net/client-address.ts';
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
