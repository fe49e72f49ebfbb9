import type { Environment } from './config.ts';

/** The process around a command: handed in, so that tests can look on. */
export interface CommandHost {
  readonly environment: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}
