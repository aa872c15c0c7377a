import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

type Mode = 'forward' | 'paused' | 'dropping-replies'

/** A TCP proxy in front of a server that can do to a connection what networks do. */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #target: URL
  /** The side of the client and the side of the server. */
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  /** Sides of the server whose next reply is for us. */
  readonly #slipped = new Set<Socket>()
  #mode: Mode = 'forward'
  #rewrite: (reply: Buffer) => Buffer = (reply) => reply

  private constructor(target: URL) {
    this.#target = target
    this.#server = createServer((client) => this.#accept(client))
  }

  /** `url` is any URL with a host and a port, as a PostgreSQL connection string is. */
  static async to(url: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(url))
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  /** The same URL through the proxy. */
  get url(): string {
    const url = new URL(this.#target)
    url.hostname = '127.0.0.1'
    url.port = String((this.#server.address() as AddressInfo).port)
    return url.href
  }

  /** Connections at this moment. */
  get connections(): number {
    return this.#pairs.size
  }

  /** Nothing passes any more, in either direction, and nobody is told: a half-open connection. New ones hang too. */
  pause(): void {
    this.#mode = 'paused'
    for (const socket of [...this.#pairs].flat()) socket.pause()
  }

  /** What was held back goes on. */
  resume(): void {
    this.#mode = 'forward'
    for (const socket of [...this.#pairs].flat()) socket.resume()
  }

  /** Requests reach the server and its replies are lost. Ends with `cut`, since a stream with a gap is of no use. */
  dropReplies(): void {
    this.#mode = 'dropping-replies'
  }

  /** Slips a request into every connection; its reply is kept from the client. Only while nothing else is under way. */
  slipIn(request: Uint8Array): void {
    for (const [, server] of this.#pairs) {
      this.#slipped.add(server)
      server.write(request)
    }
  }

  /** Changes what the server says on its way to the client. */
  rewriteReplies(rewrite: (reply: Buffer) => Buffer): void {
    this.#rewrite = rewrite
  }

  /** Closes every connection, and passes new ones on. */
  cut(): void {
    this.#mode = 'forward'
    for (const socket of [...this.#pairs].flat()) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(client: Socket): void {
    const server = connect(Number(this.#target.port), this.#target.hostname)
    const pair = [client, server] as const
    this.#pairs.add(pair)
    client.on('data', (chunk) => server.write(chunk))
    server.on('data', (chunk) => {
      if (this.#slipped.delete(server)) return
      if (this.#mode !== 'dropping-replies') client.write(this.#rewrite(chunk))
    })
    for (const [socket, other] of [pair, [server, client] as const]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        other.destroy()
        this.#pairs.delete(pair)
      })
      if (this.#mode === 'paused') socket.pause()
    }
  }
}
