// The person at a browser: signs in, allows, and gives back where the browser was sent.
import { readFileSync } from 'node:fs';

const unescaped = text =>
  text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

export class Person {
  constructor(bootstrap) {
    this.account = JSON.parse(readFileSync(bootstrap, 'utf8'));
    this.base = this.account.baseUrl;
    this.cookie = '';
  }

  async open(address, fields) {
    const body = fields && new URLSearchParams(fields);
    const headers = { cookie: this.cookie };
    const url = new URL(address, this.base);
    const answer = await fetch(url, { method: body ? 'POST' : 'GET', body, headers, redirect: 'manual' });
    const set = answer.headers.get('set-cookie');
    if (set) this.cookie = set.split(';')[0];
    return { status: answer.status, location: answer.headers.get('location'), page: await answer.text() };
  }

  value(page, name) {
    const found = page.match(new RegExp(`name="${name}" value="([^"]*)"`));
    if (!found) throw new Error(`the page has no ${name}: ${page}`);
    return unescaped(found[1]);
  }

  /** Goes through the pages; answers the address that the client gets. */
  async allow(address) {
    let answer = await this.open(address);
    if (answer.status === 200 && !answer.page.includes('name="csrf"')) {
      const { email, password } = this.account;
      answer = await this.open('/oauth/sign-in', [['request', this.value(answer.page, 'request')], ['email', email], ['password', password]]);
      if (answer.status !== 303) throw new Error(`the sign-in answered ${answer.status}: ${answer.page}`);
      answer = await this.open(answer.location);
    }
    if (answer.status !== 200) {
      if (answer.location) return answer.location;
      throw new Error(`the page answered ${answer.status}: ${answer.page}`);
    }
    const fields = ['request', 'csrf'].map(name => [name, this.value(answer.page, name)]);
    fields.push(['workspace', this.account.workspaceId], ['decision', 'allow']);
    for (const permission of ['read', 'write', 'delete']) fields.push(['permission', permission]);
    answer = await this.open('/oauth/authorize', fields);
    if (answer.status !== 303) throw new Error(`the consent answered ${answer.status}: ${answer.page}`);
    return answer.location;
  }
}
