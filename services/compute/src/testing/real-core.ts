import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  buildNetworkMessage,
  CoreClient,
  createSigner,
  generatePrivateKey,
  type Signer,
} from '@skerry/client';
import { findFreePort } from '@skerry/kit';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { hear } from '@skerry/kit/testing/heard';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import {
  type InstanceStatusContent,
  type InstanceView,
  instanceAddress,
  type MessageView,
  NETWORK_CHANNEL,
  NETWORK_POST,
  type NodeContent,
  nodeIdOf,
} from '@skerry/protocol';

const SKERRY = fileURLToPath(new URL('../../../../apps/cli/bin/skerry.js', import.meta.url));

/** A node as it announced itself to the network. */
export interface AnnouncedNode {
  readonly nodeId: string;
  readonly address: string;
  readonly content: NodeContent;
}

export interface NewInstance {
  readonly name?: string;
  readonly image?: string;
  readonly sshKey: string;
  readonly allowedPorts: readonly number[];
  readonly memory?: number;
  readonly disk?: number;
  /** The node that the scheduler chooses. */
  readonly node: Pick<AnnouncedNode, 'nodeId' | 'address'>;
  readonly ipv6Prefix: string;
  /** Told when only the allocation is missing: the core node's answer waits a second for it. */
  readonly onCreated?: () => void;
}

/** A core node, as its own process and with a database of its own, together with an owner and a scheduler that it trusts. */
export class RealCore implements AsyncDisposable {
  readonly #scheduler = createSigner(generatePrivateKey());
  readonly #owner = createSigner(generatePrivateKey());
  #home: string | undefined;
  #port: number | undefined;
  #child: ChildProcess | undefined;
  #url = '';

  get url(): string {
    return this.#url;
  }

  get owner(): Signer {
    return this.#owner;
  }

  /** Speaks as the owner. */
  get client(): CoreClient {
    return this.#client;
  }

  get #client(): CoreClient {
    return new CoreClient({ url: this.#url, signer: this.#owner });
  }

  /** @param host the address that others reach it at */
  async start(host = '127.0.0.1'): Promise<this> {
    this.#home ??= await mkdtemp(join(tmpdir(), 'skerry-core-'));
    this.#port ??= await findFreePort();
    this.#child = spawn(process.execPath, [SKERRY, 'core'], {
      env: {
        ...bareEnvironment(),
        SKERRY_HOME: this.#home,
        SKERRY_CORE_HOST: host,
        // A test asks more often than a person.
        SKERRY_CORE_RATE_LIMITS: 'no',
        // The same each time: the others look for it there.
        SKERRY_CORE_PORT: String(this.#port),
        SKERRY_CORE_SCHEDULERS: this.#scheduler.address,
        SKERRY_LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { urls } = await awaitReady<{ urls: string[] }>(this.#child, 'the core node', hear(this.#child));
    this.#url = urls[0]!;
    return this;
  }

  /** Goes away by kill -9; `start` brings it back at the same place, with all it knew. */
  async stop(): Promise<void> {
    await endProcess(this.#child, 'SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.#home) await rm(this.#home, { recursive: true, force: true, maxRetries: 50 });
  }

  async #listPosts(type: string): Promise<MessageView[]> {
    const { messages } = await this.#client.listMessages({
      channels: NETWORK_CHANNEL.compute,
      types: 'POST',
      limit: 100,
    });
    return messages.filter(({ content }) => (content as { type: string }).type === type);
  }

  /** Nodes by their newest announcement. */
  async listNodes(): Promise<AnnouncedNode[]> {
    const all = (await this.#listPosts(NETWORK_POST.node)).map(({ sender, content }) => ({
      nodeId: nodeIdOf(sender),
      address: sender,
      content: (content as { content: NodeContent }).content,
    }));
    all.sort((a, b) => a.content.announced_at_ms - b.content.announced_at_ms);
    return [...new Map(all.map((node) => [node.nodeId, node])).values()];
  }

  /** What was said of an instance, in the order in which it was observed. */
  async listStatuses(instanceId?: string): Promise<InstanceStatusContent[]> {
    const all = (await this.#listPosts(NETWORK_POST.instanceStatus)).map(
      ({ content }) => (content as { content: InstanceStatusContent }).content,
    );
    return all
      .filter((status) => instanceId === undefined || status.instance_id === instanceId)
      .sort((a, b) => a.observed_at_ms - b.observed_at_ms);
  }

  async create({
    name = 'web',
    image = 'debian:12',
    sshKey,
    allowedPorts,
    memory = 512,
    disk = 4,
    node,
    ipv6Prefix,
    onCreated,
  }: NewInstance): Promise<InstanceView> {
    const { instance_id: instanceId } = await this.#client.createInstance({
      name,
      cpu: 1,
      memory,
      disk,
      image,
      ssh_key: sshKey,
      firewall: { allowedPorts },
    });
    onCreated?.();
    await this.allocate(instanceId, node, ipv6Prefix);
    return this.get(instanceId);
  }

  /** An instance as the SDKs of the deployed network make it: a message of the network form. */
  async createByMessage(
    content: Readonly<Record<string, unknown>>,
    node: NewInstance['node'],
    ipv6Prefix: string,
  ): Promise<InstanceView> {
    const { body, itemHash } = buildNetworkMessage({ type: 'INSTANCE', content, sync: true }, this.#owner);
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${this.#url}/api/v0/messages`, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(`the instance was refused: ${answer.status} ${await answer.text()}`);
    await this.allocate(itemHash, node, ipv6Prefix);
    return this.get(itemHash);
  }

  async allocate(instanceId: string, node: NewInstance['node'], ipv6Prefix: string): Promise<void> {
    const content = {
      instance_id: instanceId,
      node_id: node.nodeId,
      node_address: node.address,
      ipv6: instanceAddress(ipv6Prefix, instanceId).guest,
      reason: null,
      decided_at_ms: Date.now(),
    };
    await new CoreClient({ url: this.#url, signer: this.#scheduler }).postMessage({
      type: 'POST',
      channel: NETWORK_CHANNEL.scheduling,
      content: { type: NETWORK_POST.allocation, content },
    });
  }

  /** The scheduler's list of nodes that run programs. */
  async listRunners(addresses: readonly string[]): Promise<void> {
    const runners = addresses.map((address) => ({
      node_id: nodeIdOf(address),
      node_address: address,
      ...{ url: 'http://127.0.0.1:1', runtimes: ['nodejs', 'python3'] },
    }));
    await new CoreClient({ url: this.#url, signer: this.#scheduler }).postMessage({
      type: 'POST',
      channel: NETWORK_CHANNEL.scheduling,
      content: { type: NETWORK_POST.runners, content: { runners, decided_at_ms: Date.now() } },
    });
  }

  get(instanceId: string): Promise<InstanceView> {
    return this.#client.getInstance(instanceId);
  }

  async allow(instanceId: string, allowedPorts: readonly number[]): Promise<void> {
    const { updated_at: after } = await this.get(instanceId);
    await this.#client.updateInstance(instanceId, { firewall: { allowedPorts } }, after);
  }

  /** The item hash of the message. */
  async control(instanceId: string, action: 'start' | 'stop' | 'restart'): Promise<string> {
    const { updated_at: after } = await this.get(instanceId);
    return (await this.#client.controlInstance(instanceId, action, after)).item_hash;
  }

  /** Resolves when an instance fits; rejects at the deadline with what it was instead. */
  async until(
    instanceId: string,
    fits: (view: InstanceView) => boolean,
    deadlineMs: number,
  ): Promise<InstanceView> {
    const { cursor } = await this.#client.listInstances({ limit: 1 });
    let view = await this.get(instanceId);
    if (fits(view)) return view;
    for await (const event of this.#client.events({ cursor, signal: AbortSignal.timeout(deadlineMs) })) {
      if (event.kind !== 'instance' || event.data.instance_id !== instanceId) continue;
      view = event.data;
      if (fits(view)) return view;
    }
    throw new Error(`not in ${deadlineMs} ms; the instance is ${JSON.stringify(view)}`);
  }
}
