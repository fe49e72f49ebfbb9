import { type AskedSigner, CoreClient } from '@skerry/client';
import { AppError, parseWebhookContent } from '@skerry/protocol';
import type { DeliveryView, WebhookView } from '@skerry/protocol/api/core/webhooks';

/** What an owner asks about webhooks: each is a message that is signed, carried out once and not kept (docs/webhooks.md). */
export interface WebhookTasks {
  readonly list: { readonly asked: object; readonly answer: readonly WebhookView[] };
  readonly register: {
    readonly asked: Readonly<Record<string, unknown>>;
    readonly answer: { readonly webhookId: string; readonly secret: string };
  };
  readonly deliveries: {
    readonly asked: { readonly id: string };
    readonly answer: readonly DeliveryView[];
  };
  readonly replay: {
    readonly asked: { readonly id: string; readonly eventId: string };
    readonly answer: null;
  };
  readonly test: { readonly asked: { readonly id: string }; readonly answer: { readonly eventId: string } };
  readonly pause: { readonly asked: { readonly id: string }; readonly answer: WebhookView };
  readonly resume: { readonly asked: { readonly id: string }; readonly answer: WebhookView };
  readonly delete: { readonly asked: { readonly id: string }; readonly answer: null };
}
export type WebhookTask = keyof WebhookTasks;

/** A question by its name. */
export type WebhookQuestion = {
  [N in WebhookTask]: { readonly name: N; readonly asked: WebhookTasks[N]['asked'] };
}[WebhookTask];
export type WebhookAnswer = WebhookTasks[WebhookTask]['answer'];

const SHOWN_MAX = 100;
const SECRET_BYTES = 32;

/** A secret of the form that libraries of Standard Webhooks take. */
const makeSecret = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
};

type Handlers = {
  readonly [N in WebhookTask]: (
    core: CoreClient<AskedSigner>,
    asked: WebhookTasks[N]['asked'],
  ) => Promise<WebhookTasks[N]['answer']>;
};

const HANDLERS: Handlers = {
  list: async (core) => (await core.listWebhooks({ limit: SHOWN_MAX })).webhooks,
  async register(core, content) {
    const secret = makeSecret();
    const registration = { ...content, secret };
    // What a core node refuses whoever signs it, nobody is asked to sign.
    parseWebhookContent(registration);
    const { webhook_id: webhookId } = await core.registerWebhook(registration);
    return { webhookId, secret };
  },
  deliveries: async (core, { id }) =>
    (await core.askWebhook(id, 'deliveries', { limit: SHOWN_MAX })).deliveries,
  async replay(core, { id, eventId }) {
    await core.askWebhook(id, 'replay', { event_id: eventId });
    return null;
  },
  test: async (core, { id }) => ({ eventId: (await core.askWebhook(id, 'test')).event_id }),
  pause: (core, { id }) => core.askWebhook(id, 'pause'),
  resume: (core, { id }) => core.askWebhook(id, 'resume'),
  async delete(core, { id }) {
    await core.askWebhook(id, 'delete');
    return null;
  },
};

/** Has a question signed and asks it. Throws AppError, also where its owner refuses. */
export async function askWebhooks<N extends WebhookTask>(
  coreUrl: string,
  { name, asked }: { readonly name: N; readonly asked: WebhookTasks[N]['asked'] },
  signer: AskedSigner | undefined,
): Promise<WebhookTasks[N]['answer']> {
  if (!signer) throw new AppError('SIGNATURE_REQUIRED', 'this requires a key');
  return HANDLERS[name](new CoreClient({ url: coreUrl, signer }), asked);
}
