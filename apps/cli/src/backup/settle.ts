import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describeDatabase, renumberEvents } from '@skerry/core';
import { EMBEDDED_DATABASE, openCluster } from '@skerry/database';
import type { DatabaseFacts, Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import { DATABASE_DIRECTORY } from './role.ts';

/** Of a server that has ended. */
const OF_THE_SERVER = ['lock', 'run', 'lib'];

/**
 * Starts the restored database once: it takes in the log of the time of the backup, is compared with what the backup says
 * of it, and is made ready to go on. Throws BACKUP_DAMAGED.
 */
export async function settleDatabase(directory: string, told: DatabaseFacts, log: Logger): Promise<string[]> {
  const dataDir = join(directory, DATABASE_DIRECTORY);
  let cursor: string;
  {
    await using cluster = await openCluster({ dataDir, log });
    const connection = { ...cluster.connection, database: EMBEDDED_DATABASE, ssl: false };
    compare(await describeDatabase(connection), told);
    cursor = await renumberEvents(connection, Date.now());
  }
  for (const name of OF_THE_SERVER) await rm(join(dataDir, name), { recursive: true, force: true });
  return [`events go on at ${cursor}, above all that readers may have seen`];
}

export { describeDatabase };

/** What was written while the end of the backup was fixed may be in it, too. */
function compare(found: DatabaseFacts, told: DatabaseFacts): void {
  const isBehind = BigInt(found.event_cursor) < BigInt(told.event_cursor);
  const isSame = found.event_cursor === told.event_cursor;
  const differs = isSame && found.messages.digest !== told.messages.digest;
  if (isBehind || differs || found.migrations < told.migrations)
    throw new AppError('BACKUP_DAMAGED', 'the restored database is not the one that the backup tells of');
}
