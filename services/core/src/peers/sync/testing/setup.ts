import { answerRanges, decodeAnswer, decodeQuestion, encodeRanges, parseItemHash } from '@skerry/protocol';
import type { TestCore } from '../../../testing/core.ts';
import { PAGE_MESSAGES, readPage, readWanted } from '../envelopes.ts';
import { decodeFrames, encodeFrames } from '../frames.ts';
import type { PeerLink } from '../link.ts';

/** Another core node of the same process, reached through the bytes that would go over the network. */
export function linkTo(name: string, find: () => TestCore): PeerLink {
  return {
    name,
    greet: async () => {
      const { node_id: nodeId, messages, forgotten, clock } = find().rooms.sync.syncer.view();
      return {
        nodeId,
        messages,
        forgotten,
        clock: { timeMs: clock.time_ms, correctionMs: clock.correction_ms },
      };
    },
    askRanges: async (question, _signal, of) => {
      const asked = encodeRanges(question);
      const { index, forgotten } = find().rooms.sync.set;
      const answer = encodeRanges(answerRanges(of ? forgotten : index, decodeQuestion(asked)));
      return { answer: decodeAnswer(answer), sizeBytes: asked.length + answer.length };
    },
    fetchMessages: async (keys) => {
      const { db, sync } = find().rooms;
      return decodeFrames(encodeFrames(await readWanted(db, sync.set, keys)), keys.length);
    },
    fetchPage: async (place) => {
      const { db, sync } = find().rooms;
      const { texts, next } = await readPage(db, sync.set, place);
      return { frames: decodeFrames(encodeFrames(texts), PAGE_MESSAGES), next };
    },
    openFile: async (name) => {
      const { blobs } = find();
      const blob = await blobs.find(parseItemHash(name));
      const contentType = 'application/octet-stream';
      return blob && { stream: await blobs.read(parseItemHash(name)), contentType };
    },
    offer: (texts) => find().rooms.sync.offers.take(encodeFrames(texts), 'somebody'),
  };
}
