#!/usr/bin/env python3
"""Makes YOLO-like networks with random weights, quantized by TensorFlow, for the counts in docs/yolo.md.

usage: yolo_networks.py FOLDER KIND-ACTIVATION-HEAD-SCALES ...     needs tensorflow (PyPI); for example v8-silu-full-pt

KIND v5, v8, v9 or v11; ACTIVATION silu, relu, relu6 or leaky; HEAD full (decoded boxes) or cat (boxes and classes of each grid);
SCALES pt (per tensor) or pc (per channel).
"""
import sys

import numpy as np
import tensorflow as tf

L = tf.keras.layers
def act(name):
    if name == "silu": return lambda x: L.Multiply()([x, L.Activation("sigmoid")(x)])
    if name == "relu6": return lambda x: L.ReLU(6.0)(x)
    if name == "relu": return lambda x: L.ReLU()(x)
    if name == "leaky": return lambda x: L.LeakyReLU(0.1)(x)
class Net:
    def __init__(self, activation): self.a = act(activation)
    def conv(self, x, c, k=1, s=1, g=1, a=True):
        if k > 1 and s == 2:
            x = L.ZeroPadding2D(((k//2, k//2), (k//2, k//2)))(x); pad = "valid"
        else: pad = "same"
        if g > 1: x = L.DepthwiseConv2D(k, strides=s, padding=pad, use_bias=False)(x)
        else: x = L.Conv2D(c, k, strides=s, padding=pad, use_bias=False)(x)
        x = L.BatchNormalization()(x)
        return self.a(x) if a else x
    def bottleneck(self, x, c, add, e=1.0, k=(1,3)):
        y = self.conv(x, int(c*e), k[0]); y = self.conv(y, c, k[1])
        return L.Add()([x, y]) if add else y
    def c3(self, x, c, n, add=True):
        a = self.conv(x, c//2); b = self.conv(x, c//2)
        for _ in range(n): a = self.bottleneck(a, c//2, add)
        return self.conv(L.Concatenate()([a, b]), c)
    def c2f(self, x, c, n, add):
        y = self.conv(x, c)
        parts = [y[..., :c//2], y[..., c//2:]]
        for _ in range(n): parts.append(self.bottleneck(parts[-1], c//2, add, k=(3,3)))
        return self.conv(L.Concatenate()(parts), c)
    def c3k2(self, x, c, n, add, c3k, e=0.5):
        h = int(c*e); y = self.conv(x, 2*h)
        parts = [y[..., :h], y[..., h:]]
        for _ in range(n):
            z = parts[-1]
            if c3k:
                a = self.conv(z, h//2); b = self.conv(z, h//2)
                for _ in range(2): a = self.bottleneck(a, h//2, add, k=(3,3))
                parts.append(self.conv(L.Concatenate()([a, b]), h))
            else: parts.append(self.bottleneck(z, h, add, e=0.5, k=(3,3)))
        return self.conv(L.Concatenate()(parts), c)
    def sppf(self, x, c):
        y = self.conv(x, c//2); p = [y]
        for _ in range(3): p.append(L.MaxPool2D(5, 1, "same")(p[-1]))
        return self.conv(L.Concatenate()(p), c)
    def aconv(self, x, c): return self.conv(L.AveragePooling2D(2, 1)(x), c, 3, 2)   # downsampling of v9
    def csp(self, x, c, n):
        a = self.conv(x, c//2); b = self.conv(x, c//2)
        for _ in range(n): a = self.bottleneck(a, c//2, True, k=(3,3))
        return self.conv(L.Concatenate()([a, b]), c)
    def elan(self, x, c, c3, c4, n=3):   # RepNCSPELAN4 of v9; n = 0: ELAN1
        y = self.conv(x, c3); parts = [y[..., :c3//2], y[..., c3//2:]]
        for _ in range(2): parts.append(self.conv(self.csp(parts[-1], c4, n) if n else parts[-1], c4, 3))
        return self.conv(L.Concatenate()(parts), c)
    def attention(self, x, c, heads):   # PSA of v10/v11
        b, h, w, _ = x.shape; n = h*w; kd = c//heads//2; hd = c//heads
        qkv = self.conv(x, heads*(2*kd+hd), a=False)
        qkv = L.Reshape((n, heads, 2*kd+hd))(qkv)
        q, k, v = qkv[..., :kd], qkv[..., kd:2*kd], qkv[..., 2*kd:]
        q = tf.keras.ops.transpose(q, (0,2,1,3)); k = tf.keras.ops.transpose(k, (0,2,3,1)); v = tf.keras.ops.transpose(v, (0,2,1,3))
        a = L.Softmax()(tf.keras.ops.matmul(q, k) * (kd ** -0.5))
        o = tf.keras.ops.matmul(a, v); o = tf.keras.ops.transpose(o, (0,2,1,3)); o = L.Reshape((h, w, c))(o)
        vv = L.Reshape((h, w, c))(qkv[..., 2*kd:])
        pe = self.conv(vv, c, 3, g=c, a=False)
        return self.conv(L.Add()([o, pe]), c, a=False)
    def c2psa(self, x, c):
        y = self.conv(x, c); a, b = y[..., :c//2], y[..., c//2:]
        b = L.Add()([b, self.attention(b, c//2, max(1, c//2//64))])
        f = self.conv(b, c); f = self.conv(f, c//2, a=False); b = L.Add()([b, f])
        return self.conv(L.Concatenate()([a, b]), c)
def up(x): return L.UpSampling2D(2, interpolation="nearest")(x)
def cat(*a): return L.Concatenate()(list(a))
def v5(n, x, nc, w):
    c = lambda v: int(v*w)
    x = n.conv(x, c(64), 3, 2)
    x = n.conv(x, c(128), 3, 2); x = n.c3(x, c(128), 1)
    x = n.conv(x, c(256), 3, 2); p3 = x = n.c3(x, c(256), 2)
    x = n.conv(x, c(512), 3, 2); p4 = x = n.c3(x, c(512), 3)
    x = n.conv(x, c(1024), 3, 2); x = n.c3(x, c(1024), 1); x = n.sppf(x, c(1024))
    h5 = x = n.conv(x, c(512)); x = n.c3(cat(up(x), p4), c(512), 1, False)
    h4 = x = n.conv(x, c(256)); o3 = x = n.c3(cat(up(x), p3), c(256), 1, False)
    o4 = x = n.c3(cat(n.conv(x, c(256), 3, 2), h4), c(512), 1, False)
    o5 = n.c3(cat(n.conv(x, c(512), 3, 2), h5), c(1024), 1, False)
    return [o3, o4, o5]
def v8(n, x, nc, w):
    c = lambda v: int(v*w)
    x = n.conv(x, c(64), 3, 2); x = n.conv(x, c(128), 3, 2); x = n.c2f(x, c(128), 1, True)
    x = n.conv(x, c(256), 3, 2); p3 = x = n.c2f(x, c(256), 2, True)
    x = n.conv(x, c(512), 3, 2); p4 = x = n.c2f(x, c(512), 2, True)
    x = n.conv(x, c(1024), 3, 2); x = n.c2f(x, c(1024), 1, True); p5 = x = n.sppf(x, c(1024))
    h4 = x = n.c2f(cat(up(x), p4), c(512), 1, False)
    o3 = x = n.c2f(cat(up(x), p3), c(256), 1, False)
    o4 = x = n.c2f(cat(n.conv(x, c(256), 3, 2), h4), c(512), 1, False)
    o5 = n.c2f(cat(n.conv(x, c(512), 3, 2), p5), c(1024), 1, False)
    return [o3, o4, o5]
def v9(n, x, nc, w):
    c = lambda v: int(v*w*4)
    x = n.conv(x, c(16), 3, 2); x = n.conv(x, c(32), 3, 2); x = n.elan(x, c(32), c(32), c(16), 0)
    x = n.aconv(x, c(64)); p3 = x = n.elan(x, c(64), c(64), c(32))
    x = n.aconv(x, c(96)); p4 = x = n.elan(x, c(96), c(96), c(48))
    x = n.aconv(x, c(128)); x = n.elan(x, c(128), c(128), c(64)); p5 = x = n.sppf(x, c(128))
    h4 = x = n.elan(cat(up(x), p4), c(96), c(96), c(48))
    o3 = x = n.elan(cat(up(x), p3), c(64), c(64), c(32))
    o4 = x = n.elan(cat(n.aconv(x, c(48)), h4), c(96), c(96), c(48))
    o5 = n.elan(cat(n.aconv(x, c(64)), p5), c(128), c(128), c(64))
    return [o3, o4, o5]
def v11(n, x, nc, w):
    c = lambda v: int(v*w)
    x = n.conv(x, c(64), 3, 2); x = n.conv(x, c(128), 3, 2); x = n.c3k2(x, c(256), 1, True, False, 0.25)
    x = n.conv(x, c(256), 3, 2); p3 = x = n.c3k2(x, c(512), 1, True, False, 0.25)
    x = n.conv(x, c(512), 3, 2); p4 = x = n.c3k2(x, c(512), 1, True, True)
    x = n.conv(x, c(1024), 3, 2); x = n.c3k2(x, c(1024), 1, True, True); x = n.sppf(x, c(1024)); p5 = x = n.c2psa(x, c(1024))
    h4 = x = n.c3k2(cat(up(x), p4), c(512), 1, False, False)
    o3 = x = n.c3k2(cat(up(x), p3), c(256), 1, False, False)
    o4 = x = n.c3k2(cat(n.conv(x, c(256), 3, 2), h4), c(512), 1, False, False)
    o5 = n.c3k2(cat(n.conv(x, c(512), 3, 2), p5), c(1024), 1, False, True)
    return [o3, o4, o5]
# heads
def head5(n, feats, nc, size):
    """v5 as exported by export.py: sigmoid, grid, one output [1, cells*3, 5+nc], boxes as parts of the image."""
    outs = []
    for f, s, wh in zip(feats, (8, 16, 32), ([10,13,16,30,33,23],[30,61,62,45,59,119],[116,90,156,198,373,326])):
        g = size//s; y = L.Conv2D(3*(5+nc), 1)(f)
        y = L.Reshape((g*g, 3, 5+nc))(y); y = tf.keras.ops.transpose(y, (0,2,1,3)); y = L.Activation("sigmoid")(y)
        yy, xx = np.meshgrid(np.arange(g), np.arange(g), indexing="ij")
        grid = np.stack([xx, yy], -1).reshape(1,1,g*g,2).astype("float32")
        anchors = np.array(wh, "float32").reshape(1,3,1,2)/size
        xy = (y[..., 0:2]*2 + (grid-0.5))*(s/size); whs = (y[..., 2:4]*2); whs = whs*whs*anchors
        y = tf.keras.ops.concatenate([xy, whs, y[..., 4:]], -1)
        outs.append(L.Reshape((3*g*g, 5+nc))(y))
    return tf.keras.ops.concatenate(outs, 1)
def raw8(n, feats, nc, dw):
    out = []
    c2 = max(16, feats[0].shape[-1]//4, 64); c3 = max(feats[0].shape[-1], min(nc, 100))
    for f in feats:
        a = n.conv(n.conv(f, c2, 3), c2, 3); a = L.Conv2D(64, 1)(a)
        if dw:
            b = n.conv(f, f.shape[-1], 3, g=2); b = n.conv(b, c3); b = n.conv(b, c3, 3, g=2); b = n.conv(b, c3)
        else: b = n.conv(n.conv(f, c3, 3), c3, 3)
        b = L.Conv2D(nc, 1)(b); out.append((a, b))
    return out
def head8(n, feats, nc, size, dw):
    """v8/v11 as exported: DFL softmax, distances to boxes, sigmoid classes: [1, 4+nc, cells]."""
    r = [L.Reshape((-1, 64+nc))(cat(a, b)) for a, b in raw8(n, feats, nc, dw)]
    y = tf.keras.ops.concatenate(r, 1); y = tf.keras.ops.transpose(y, (0,2,1))   # [1, 64+nc, cells]
    cells = y.shape[2]; box, cls = y[:, :64], y[:, 64:]
    b = L.Reshape((4, 16, cells))(box); b = tf.keras.ops.transpose(b, (0,3,1,2)); b = L.Softmax()(b)   # [1, cells,4,16]
    b = L.Conv2D(1, 1, use_bias=False)(tf.keras.ops.reshape(b, (-1, cells, 4, 16)))
    b = tf.keras.ops.transpose(L.Reshape((cells, 4))(b), (0,2,1))
    anchors, strides = [], []
    for s in (8,16,32):
        g = size//s; yy, xx = np.meshgrid(np.arange(g)+.5, np.arange(g)+.5, indexing="ij")
        anchors.append(np.stack([xx,yy],0).reshape(2,-1)); strides.append(np.full((1,g*g), s))
    A = np.concatenate(anchors,1)[None].astype("float32"); S = np.concatenate(strides,1)[None].astype("float32")
    A, S = tf.constant(A), tf.constant(S); K = tf.keras.ops; x1 = K.subtract(A, b[:, :2]); x2 = K.add(b[:, 2:], A)
    box = K.multiply(K.concatenate([(x1+x2)/2, x2-x1], 1), S/size)
    return tf.keras.ops.concatenate([box, L.Activation("sigmoid")(cls)], 1)
def build(kind, activation, head, size=320, nc=80, w=0.25):
    n = Net(activation); i = L.Input((size,size,3), batch_size=1)
    f = {"v5": v5, "v8": v8, "v9": v9, "v11": v11}[kind](n, i, nc, w)
    if kind == "v5":
        o = head5(n, f, nc, size) if head == "full" else [L.Conv2D(3*(5+nc), 1)(x) for x in f]
    elif head == "full": o = head8(n, f, nc, size, kind == "v11")
    else: o = [cat(a, L.Activation("sigmoid")(b)) for a, b in raw8(n, f, nc, kind == "v11")]
    return tf.keras.Model(i, o)
def quantize(m, per_tensor, size):
    rng = np.random.default_rng(1)
    def data():
        for _ in range(4):
            z = rng.random((1, size//16, size//16, 3)).astype("float32")
            yield [tf.image.resize(z, (size, size)).numpy()]
    for l in m.layers:
        if isinstance(l, L.BatchNormalization):
            g,b,mu,v = l.get_weights(); c=len(g)
            l.set_weights([rng.uniform(.8,1.4,c), rng.normal(0,.3,c), np.zeros(c), np.ones(c)])
    # batch norm statistics by one forward pass
    x = next(iter(data()))[0]
    ins = [l for l in m.layers if isinstance(l, L.BatchNormalization)]
    sub = m
    for l in ins: l.momentum = 0.0
    sub(x, training=True)
    # from_keras_model() of TensorFlow 2.16 crashes on variables of Keras 3, so they become constants
    call = tf.function(lambda x: m(x, training=False)).get_concrete_function(tf.TensorSpec((1, size, size, 3), tf.float32))
    c = tf.lite.TFLiteConverter.from_concrete_functions([call], m); c.experimental_lower_to_saved_model = False
    c.optimizations = [tf.lite.Optimize.DEFAULT]; c.representative_dataset = data
    c.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    c.inference_input_type = tf.uint8 if per_tensor else tf.int8
    c.inference_output_type = tf.uint8 if per_tensor else tf.int8
    c._experimental_disable_per_channel = per_tensor
    return c.convert()
if __name__ == "__main__":
    for spec in sys.argv[2:]:
        kind, activation, head, scales = spec.split("-")
        tf.keras.utils.set_random_seed(7)
        network = build(kind, activation, head)
        with open(f"{sys.argv[1]}/{spec}.tflite", "wb") as file:
            file.write(quantize(network, scales == "pt", 320))
