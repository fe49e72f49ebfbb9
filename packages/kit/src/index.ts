export { cached, within } from './cached.ts';
export { type AddressSet, createAddressSet } from './client-address.ts';
export { type ClientName, createClientNames } from './client-names.ts';
export * from './config.ts';
export { type ApiInfo, documentRoutes } from './document.ts';
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
export { backoffMs, type LoopOptions, pause, runLoop } from './loop.ts';
export { createHttpObserver, createMetrics, type Metrics } from './metrics.ts';
export { type SkerryPaths, skerryPaths } from './paths.ts';
export type { LimitedClass, RateClass, RateLimitOptions } from './rate-limit.ts';
export { createLookup, createReach, type Family, findAddresses, type MayReach } from './reach.ts';
export type { HttpObserver } from './request-trace.ts';
export { type Host, type RunningService, runService, type Service } from './service.ts';
export { Slots } from './slots.ts';
export { VERSION } from './version.ts';
