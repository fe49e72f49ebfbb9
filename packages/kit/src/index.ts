export { type Answered, AskError, type Asker, type AskFailure, type AskOptions, createAsker } from './ask.ts';
export { cached, within } from './cached.ts';
export { type AddressSet, clientKeyOf, createAddressSet } from './client-address.ts';
export * from './config.ts';
export { type ApiInfo, documentRoutes } from './document.ts';
export { backoffMs, Failures, type FailuresOptions } from './failures.ts';
export { escapeHtml } from './html.ts';
export {
  asAppError,
  createHttpServer,
  errorBody,
  type HttpServer,
  type HttpServerOptions,
  listen,
  urlOfListener,
} from './http.ts';
export { createKeyFile, loadOrCreateKeyFile } from './key-file.ts';
export { createLogger, type Logger } from './log.ts';
export { type LoopOptions, type PersistOptions, pause, persist, runLoop } from './loop.ts';
export { createHttpObserver, createMetrics, type Metrics } from './metrics.ts';
export { type SkerryPaths, skerryPaths } from './paths.ts';
export {
  ClientTable,
  type LimitedClass,
  type RateClass,
  type RateLimitOptions,
  rateLimitsOf,
} from './rate-limit.ts';
export {
  createLookup,
  createReach,
  type Family,
  findAddresses,
  isPublicAddress,
  type MayReach,
  resolveName,
} from './reach.ts';
export type { HttpObserver } from './request-trace.ts';
export { Rests } from './rests.ts';
export { type Host, type RunningService, runService, type Service } from './service.ts';
export { type Held, type NoShare, type ShareLimits, Shares } from './shares.ts';
export { Slots } from './slots.ts';
export { createStandings, type Standing, type StandingOptions } from './standing.ts';
export { VERSION } from './version.ts';
