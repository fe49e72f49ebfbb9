import { requestJson, type ScoresContent } from '@skerry/client';
import { AppError, parseEvmAddress, SCORES_POST_TYPE } from '@skerry/protocol';
import type { Context } from '../context.ts';
import { plainText, renderFields } from '../output/text.ts';
import { renderScores } from './render.ts';

interface PostsPage {
  readonly posts: readonly {
    readonly item_hash: string;
    readonly address: string;
    readonly content: ScoresContent;
  }[];
}

/** The newest published scores. What a stranger published is shown as such: whoever published is told. */
export async function showLatest({ coreUrl, output }: Context, publisher: string | undefined): Promise<void> {
  const query = new URLSearchParams({ types: SCORES_POST_TYPE, pagination: '1' });
  if (publisher !== undefined) query.set('addresses', parseEvmAddress(publisher));
  const { posts } = await requestJson<PostsPage>(`${coreUrl}/api/v0/posts.json?${query}`);
  const [post] = posts;
  if (!post) throw new AppError('MESSAGE_NOT_FOUND', 'nobody has published scores yet');
  const { content, item_hash, address } = post;
  if (!Array.isArray(content?.scores?.ccn) || !Array.isArray(content.scores.crn))
    throw new AppError('INVALID_CONTENT', `${item_hash} does not have the form of scores`);
  const facts = renderFields([
    ['publisher', plainText(address)],
    ['measured', plainText(content.measured_at ?? 'never')],
    ['item_hash', item_hash],
    ['verify', `skerry score verify ${item_hash}`],
  ]);
  const table = renderScores(content.scores);
  output.result({ publisher: address, item_hash, ...content }, table === '' ? facts : `${table}\n\n${facts}`);
}
