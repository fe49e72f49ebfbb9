import type { Accepted, Verdict } from './accepted.ts';
import type { UploadedFile } from './effects/files.ts';
import { type PassedOn, takePassedOn } from './passed-on.ts';
import { type IntakeOptions, keepFrom, SOURCES, secondsOf } from './sources.ts';
import { acceptStored, type StoredMessage } from './stored.ts';
import { checkChannel, type Submissions, takeSubmissions } from './submissions.ts';
import { acceptUpload, type UploadFields } from './upload.ts';

/**
 * The only way of a message into the node, one entry for each source (SOURCES): verify, read the content, then decide and
 * write with others (pipeline.ts).
 */
export interface Intake {
  readonly client: Submissions & {
    /** The message that an upload stands for. Throws INVALID_ENVELOPE, INVALID_ADDRESS, INVALID_SIGNATURE. */
    readUpload(fields: UploadFields, file: UploadedFile): Accepted;
  };
  readonly own: Submissions;
  readonly archive: Submissions;
  readonly block: {
    /** A message was there by then. @param timeMs of the block, milliseconds since 1970 */
    date(row: StoredMessage, timeMs: number): Promise<Verdict>;
  };
  readonly gossip: PassedOn;
  readonly offer: PassedOn;
  readonly peer: PassedOn;
}

/** A message is dated as it is kept. */
const noFile = async () => undefined;

export function createIntake(options: IntakeOptions): Intake {
  return {
    client: {
      ...takeSubmissions(SOURCES.client, options),
      readUpload(fields, file) {
        checkChannel(fields.channel);
        return acceptUpload(fields, file, secondsOf(options));
      },
    },
    own: takeSubmissions(SOURCES.own, options),
    archive: takeSubmissions(SOURCES.archive, options),
    block: {
      date: async (row, timeMs) =>
        keepFrom(SOURCES.block, await acceptStored({ ...row, noted_ms: timeMs }, noFile), options),
    },
    gossip: takePassedOn(SOURCES.gossip, options),
    offer: takePassedOn(SOURCES.offer, options),
    peer: takePassedOn(SOURCES.peer, options),
  };
}
