import { createLogger } from '@skerry/kit';
import { findHaproxy } from '../program.ts';

/** HAProxy for tests, installed as a gateway would; without it there is nothing to test, and that is said. */
export const haproxyForTests = () =>
  findHaproxy({
    installPackages: true,
    log: createLogger('test', 'error'),
    signal: new AbortController().signal,
  });
