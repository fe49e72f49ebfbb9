import type { Database } from '../../packages/database/src/connect.ts';
import { createWrite } from '../../packages/database/src/write.ts';
import { createIntake } from '../../services/core/src/intake/intake.ts';
import { Pipeline } from '../../services/core/src/intake/pipeline/pipeline.ts';
import type { Verifier } from '../../services/core/src/intake/verify/verifier.ts';
import { createEventLog } from '../../services/core/src/notify/events/log.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';

/** Callers that wait for their answers at the same time. */
const CALLERS = 2_000;

/** From bytes to durable, as a door does it: verified on threads, decided and written in batches. */
export async function ingest(
  database: Database<Schema>,
  bodies: readonly Buffer[],
  verifier: Verifier,
): Promise<void> {
  const db = database.kysely;
  const readContentFile = async () => undefined;
  const pipeline = new Pipeline({
    db,
    write: createWrite(database.pool),
    events: createEventLog(db),
    schedulers: new Set(),
    pendingHorizonMs: 3_600_000,
    readContentFile,
    now: Date.now,
  });
  const intake = createIntake({
    verifier,
    pipeline,
    readContentFile,
    carryOut: async () => {},
    checkNew: async () => {},
    now: Date.now,
  });
  let next = 0;
  const call = async () => {
    while (next < bodies.length) {
      const { verdict } = await intake.client.submit(bodies[next++]!);
      if (verdict.status !== 'processed') throw new Error(`a message was ${verdict.status}`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  await pipeline.close();
}
