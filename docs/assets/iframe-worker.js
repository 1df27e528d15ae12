/* Lets the site be searched from a file. A browser starts no worker from a file, but it does load a script into a frame
 * of the same page; this class does that, and passes messages as a worker would. Behind a web server it does nothing. */
(function () {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const load = (address) => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.onload = resolve;
        script.onerror = reject;
        script.src = address;
        inside.document.head.append(script);
      });
      inside.importScripts = (...addresses) => addresses.reduce((done, one) => done.then(() => load(one)), Promise.resolve());
      inside.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      load(url).then(() => {
        const waited = this.waiting;
        this.waiting = null;
        waited.forEach((data) => this.postMessage(data));
      });
    }

    postMessage(data) {
      if (this.waiting) {
        this.waiting.push(data);
        return;
      }
      const inside = this.frame.contentWindow;
      setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
