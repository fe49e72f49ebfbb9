import { rateLimitsOf, readConfig, withExamples, writeDocument } from '@skerry/kit';
import { CORE_API } from '@skerry/protocol/api/core/index';
import { INFO, readExamples } from './api/api.ts';
import { coreConfig } from './config.ts';

/** The OpenAPI 3.1 document of the core node, with the rates of the default settings. */
export const describeApi = async () =>
  writeDocument(
    withExamples(CORE_API, await readExamples()),
    INFO,
    rateLimitsOf(readConfig(coreConfig, {})).perMinute,
  );
