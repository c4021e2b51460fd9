/* A page that is opened from the disk may not start a worker. Search then runs in a frame of the
   page, which has what its script asks of a worker. The theme asks for this by name
   (mkdocs.yml, extra.polyfills), and its plugin "offline" puts the index into a script. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => {
        this.dispatchEvent(new MessageEvent("message", { data }));
      };
      this.loaded = new Promise((loaded) => {
        const script = this.inside.document.createElement("script");
        script.src = url;
        script.onload = loaded;
        this.inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.loaded.then(() => {
        this.inside.dispatchEvent(new MessageEvent("message", { data }));
      });
    }
  };
}
