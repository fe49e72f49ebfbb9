import { MESSAGES_TOPIC } from '../../core/deployed/publish.ts';
import type { Examples } from '../../operation.ts';
import { NETWORK_CONTENT, NETWORK_NOTE, NOTE } from '../signed.ts';
import { DATE, deployedPagination, FILE, OWNER, PAGINATION, TIME } from '../values.ts';

const { message, signature } = NOTE.body;

/** As the specification has it. */
const NOTE_VIEW = {
  item_hash: NOTE.itemHash,
  chain: message.chain,
  sender: OWNER,
  type: message.type,
  channel: message.channel,
  timestamp: TIME,
  content: message.content,
  signature,
  signed_text: JSON.stringify(message),
  confirmations: [],
};

/** As deployed nodes have it: its content has the owner and the time beside what was signed. */
const NOTE_AS_DEPLOYED = {
  ...NETWORK_NOTE,
  item_hash: NOTE.itemHash,
  signature,
  content: NETWORK_CONTENT,
  confirmations: [],
  confirmed: false,
};

/** One that was sent in the form of deployed nodes. */
const LISTED = {
  ...NETWORK_NOTE,
  content: NETWORK_CONTENT,
  size: NETWORK_NOTE.item_content.length,
  confirmations: [],
  confirmed: false,
};
const POST = {
  chain: LISTED.chain,
  item_hash: LISTED.item_hash,
  sender: OWNER,
  type: 'note',
  channel: LISTED.channel,
  confirmed: false,
  content: NETWORK_CONTENT.content,
  item_content: LISTED.item_content,
  item_type: LISTED.item_type,
  signature: LISTED.signature,
  size: LISTED.size,
  time: TIME,
  confirmations: [],
  original_item_hash: LISTED.item_hash,
  original_signature: LISTED.signature,
  original_type: 'note',
  hash: LISTED.item_hash,
  address: OWNER,
  ref: null,
};
const BRIEF_POST = {
  item_hash: LISTED.item_hash,
  content: NETWORK_CONTENT.content,
  original_item_hash: LISTED.item_hash,
  original_type: 'note',
  address: OWNER,
  ref: null,
  channel: LISTED.channel,
  created: DATE,
  last_updated: DATE,
};

const pageOf = (item: 'messages' | 'posts') => ({
  ...deployedPagination(),
  pagination_item: item,
  next_cursor: null,
});
const MESSAGE_PAGE = { messages: [LISTED], ...pageOf('messages') };
const POST_PAGE = { posts: [POST], ...pageOf('posts') };
const BRIEF_PAGE = { posts: [BRIEF_POST], ...pageOf('posts') };

const PUBLISHED = {
  body: { topic: MESSAGES_TOPIC, data: NETWORK_NOTE },
  answer: { status: 'success', failed: [] },
};

export const MESSAGE_EXAMPLES: Examples = {
  submitMessage: { body: NOTE.body, answer: { item_hash: NOTE.itemHash, status: 'success' } },
  getMessage: {
    params: { hash: NOTE.itemHash },
    answer: { ...NOTE_VIEW, status: 'processed', reception_time: DATE, message: NOTE_AS_DEPLOYED },
  },
  getMessageStatus: {
    params: { hash: FILE.store },
    answer: {
      item_hash: FILE.store,
      status: 'pending',
      reception_time: DATE,
      reason: { code: 'FILE_NOT_FOUND', message: 'the file is not here yet' },
    },
  },
  getMessageContent: { params: { hash: NOTE.itemHash }, answer: message.content.content },
  listMessages: {
    query: { channels: 'notes' },
    answer: { messages: [NOTE_VIEW], pagination: PAGINATION, next_cursor: null },
  },
  listNetworkMessages: { query: { channels: 'notes', pagination: 20 }, answer: MESSAGE_PAGE },
  listNetworkMessagesOfPage: { params: { page: 1 }, query: { channels: 'notes' }, answer: MESSAGE_PAGE },
  listMessageHashes: {
    query: { status: 'processed' },
    answer: { hashes: [NOTE.itemHash], ...deployedPagination(), pagination_item: 'hashes' },
  },
  listNetworkPosts: { query: { types: 'note' }, answer: POST_PAGE },
  listNetworkPostsOfPage: { params: { page: 1 }, query: { types: 'note' }, answer: POST_PAGE },
  listBriefPosts: { query: { types: 'note' }, answer: BRIEF_PAGE },
  listBriefPostsOfPage: { params: { page: 1 }, query: { types: 'note' }, answer: BRIEF_PAGE },
  publishMessage: PUBLISHED,
  publishIpfsMessage: PUBLISHED,
};
