import { describe, expect, it } from 'vitest'
import { StatusLine } from './status-line.js'

class Terminal {
  written = ''
  readonly isTTY: boolean
  readonly columns = 10

  constructor(isTTY: boolean) {
    this.isTTY = isTTY
  }

  write(text: string): void {
    this.written += text
  }
}

describe('StatusLine', () => {
  it('draws over itself on a terminal, no longer than a line, and leaves nothing behind', () => {
    const terminal = new Terminal(true)
    const line = new StatusLine(terminal)
    line.show('1 of 2')
    line.show('a text that would wrap')
    line.clear()
    expect(terminal.written).toBe('\r1 of 2\u001b[K\ra text th\u001b[K\r\u001b[K')
  })

  it('makes room for a line that stays', () => {
    const terminal = new Terminal(true)
    const line = new StatusLine(terminal)
    line.show('1 of 2')
    line.say('note')
    expect(terminal.written).toBe('\r1 of 2\u001b[K\r\u001b[Knote\n')
  })

  it('writes only what stays when there is no terminal', () => {
    const file = new Terminal(false)
    const line = new StatusLine(file)
    line.show('1 of 2')
    line.say('note')
    line.clear()
    expect(file.written).toBe('note\n')
  })
})
