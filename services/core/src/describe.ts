import { rateLimitsOf, readConfig, writeDocument } from '@skerry/kit';
import { CORE_API } from '@skerry/protocol/api/core/index';
import { INFO } from './api/api.ts';
import { coreConfig } from './config.ts';

/** The OpenAPI 3.1 document of the core node, with the rates of the default settings. */
export const describeApi = () =>
  writeDocument(CORE_API, INFO, rateLimitsOf(readConfig(coreConfig, {})).perMinute);
